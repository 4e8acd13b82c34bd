"""``stepladder watch``: plays an env, a level or a run's env in a window, or into a film."""

import math
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import tyro

from stepladder.cli.inputs.parsing import parse, read_checkpoint
from stepladder.cli.inputs.playable import Playable, find_playable, pretrained_games
from stepladder.cli.output import console
from stepladder.cli.output.playing import LAST_PICTURE_S, PlayCounts, Shutter, make_policy, play
from stepladder.configs.checks import NotNegativeInteger, Positive, PositiveInteger
from stepladder.configs.codec import Config
from stepladder.errors import ConfigError
from stepladder.games.drawing import Picture
from stepladder.games.drawing.canvas import resized
from stepladder.games.drawing.film import FILM_MARK, check_film, write_film
from stepladder.games.drawing.packages import keeping_signals
from stepladder.games.drawing.window import Window, require_screen
from stepladder.runs.checkpoint_choice import LAST
from stepladder.training.evaluation.scores import WAYS_IN_WORDS
from stepladder.training.pretrained import find_pretrained, pretrained_names

USUAL_RATE = 30.0
"""Steps per second of an env that does not declare its own."""

MOST_FPS, MOST_GIF_FPS = 60.0, 30.0
"""Most pictures per second unless ``--fps`` is given."""


@dataclass(frozen=True, kw_only=True)
class WatchArguments(Config):
    """Play an env in a window, or into a film.

    For a run, this plays its env with tasks that its curriculum draws now, and its trained policy
    in that policy's own way of acting. Episodes are shown as they come, failures too.
    """

    env_or_run: tyro.conf.Positional[str | None] = None
    """A Gymnasium id such as CartPole-v1; module:id, where importing the module registers the id;
    module:function, a function that makes an env; the file of a level; or the folder of a run."""

    pretrained: str | None = None
    """Instead: the name of a policy that comes with the package, in held-out games of its
    evaluation, one of each opponent or stage in turn; any other word lists the names."""

    out: Path | None = None
    """Film to write: a .gif or .mp4 file. By default a window is opened instead."""

    episodes: PositiveInteger | None = None
    """Number of episodes to play. By default 1, of a pre-trained policy one per opponent or
    stage."""

    seed: NotNegativeInteger = 0
    """Seed of the first episode, of the actions and of the tasks of a run."""

    policy: str | None = None
    """The policy: random; idle; scripted or planner, the env's own expert; learnt, the policy of
    the run; the folder of a run, a checkpoint or a file of weights; or module:function, which takes
    the env and returns a function from observation to action. By default the policy of the run,
    else the expert, else random."""

    checkpoint: str = LAST
    """Which policy of the run plays: last, the newest; best, that of its best evaluation so far; or
    the step of a checkpoint. Tasks are drawn as that checkpoint left the curriculum."""

    env_id: str | None = None
    """For a run: another name of its env, such as module:Class for one that was defined in a script
    or a notebook; it gets the run's tasks. By default the name that the run has."""
    drawn: bool = False
    """A trained policy draws its actions. By default it acts in its own way: PPO draws them, SAC
    and DDDQN take the best."""

    best: bool = False
    """A trained policy takes its best actions."""

    env: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """An argument of the env as KEY=VALUE, such as mode=TRAIN_SHOOTING; may be given several
    times."""

    fps: Positive | None = None
    """Pictures per second, at most one per step. Fewer pictures leave out steps and do not change
    the speed of play. By default at most 60, in a GIF 30."""

    scale: Positive = 1.0
    """Factor by which pictures are enlarged."""

    max_steps: PositiveInteger = 2000
    """Steps after which an episode is cut off."""

    trust: bool = False
    """Allow imports of modules that the run names, which runs their code. Use it only if you trust
    where the run came from."""


def main(argv: Sequence[str]) -> int:
    """Run the verb; return the exit code."""
    arguments = parse(WatchArguments, argv, "watch")
    if arguments.drawn and arguments.best:
        raise ConfigError(
            "--drawn and --best exclude each other; without either, the policy's own way is shown."
        )
    # Before the env is made, which may take long.
    if arguments.out is None:
        require_screen()
    else:
        check_film(arguments.out, fps=1.0)
        console.refuse_foreign(arguments.out, FILM_MARK, "--out")
    # Envs of other libraries open a screen even if nothing is shown.
    is_of_policy = arguments.policy is not None and Path(arguments.policy).exists()
    checkpoint = read_checkpoint(arguments.checkpoint)
    with keeping_signals():
        if arguments.pretrained is not None:
            _require_alone(arguments)
            playable = pretrained_games(find_pretrained(arguments.pretrained), arguments.env)
        elif arguments.env_or_run is None:
            raise ConfigError(
                "there is nothing to watch. Name an env, a level or a run, or a policy that comes "
                f"with the package: --pretrained {' or '.join(pretrained_names())}."
            )
        else:
            playable = find_playable(
                arguments.env_or_run,
                arguments.env,
                arguments.seed,
                env_id=arguments.env_id,
                trust=arguments.trust,
                # A run that is named as the policy is what the flag is about.
                checkpoint=LAST if is_of_policy else checkpoint,
            )
        with closing(playable.env):
            console.say(_played(playable, arguments))
    return 0


def _require_alone(arguments: WatchArguments) -> None:
    """Raise if something is named beside --pretrained that it decides itself."""
    beside = {
        arguments.env_or_run: arguments.env_or_run is not None,
        "--env-id": arguments.env_id is not None,
        "--checkpoint": arguments.checkpoint != LAST,
        "--trust": arguments.trust,
    }
    for what, is_given in beside.items():
        if is_given:
            raise ConfigError(
                f"--pretrained {arguments.pretrained} and {what} were given. Leave one out."
            )


def _played(playable: Playable, arguments: WatchArguments) -> str:
    """Play, and show or film it; return a summary in one line."""
    playable.env.action_space.seed(arguments.seed)
    rate = float(playable.env.metadata.get("render_fps") or USUAL_RATE)
    if arguments.fps is not None:
        fps = min(arguments.fps, rate)
    else:
        is_gif = arguments.out is not None and arguments.out.suffix.lower() == ".gif"
        # An integer number of steps between two pictures, so that movements stay even.
        fps = rate / math.ceil(rate / (MOST_GIF_FPS if is_gif else MOST_FPS))
    counts = PlayCounts()
    way = "best" if arguments.best else "drawn" if arguments.drawn else None
    checkpoint = read_checkpoint(arguments.checkpoint)
    policy = make_policy(
        arguments.policy,
        playable,
        checkpoint,
        trust=arguments.trust,
        way=way,
        seed=arguments.seed,
    )
    pictures = play(
        playable,
        policy,
        num_episodes=arguments.episodes or playable.num_groups,
        max_steps=arguments.max_steps,
        seed=arguments.seed,
        shutter=Shutter(rate, fps),
        end_pictures=round(LAST_PICTURE_S * fps),
        counts=counts,
    )
    scaled = (resized(picture, arguments.scale) for picture in pictures)
    if arguments.out is None:
        with closing(Window(playable.name, fps)) as window:
            for picture in scaled:
                window.show(picture)
                if not window.is_open:
                    break
    else:
        _film(arguments.out, scaled, fps, counts)
    plural = ["" if count == 1 else "s" for count in (counts.num_pictures, counts.num_episodes)]
    summary = (
        f"{arguments.out or 'window'}: {counts.num_pictures:,} picture{plural[0]}, "
        f"{counts.num_pictures / fps:.1f} s, {counts.num_episodes:,} episode{plural[1]}"
    )
    way, played_by = getattr(policy, "way", None), getattr(policy, "name", None)
    if way is not None:
        summary += f", {WAYS_IN_WORDS[way]}"
    if isinstance(played_by, str):
        summary += f", played by {played_by}"
    return f"{summary}: {counts.outcome}" if counts.outcome else summary


def _film(out: Path, pictures: Iterator[Picture], fps: float, counts: PlayCounts) -> None:
    """Write a film, and show the progress."""
    with console.progress("playing") as tell:

        def counted() -> Iterator[Picture]:
            for picture in pictures:
                tell(f"episode {counts.num_episodes + 1}, {counts.num_pictures} pictures")
                yield picture

        write_film(out, counted(), fps)
