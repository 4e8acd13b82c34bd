"""``stepladder watch``: plays an env, a level or a run's env in a window, or into a film."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro

from stepladder.cli import console
from stepladder.cli.parsing import parse
from stepladder.cli.playable import Playable, find_playable
from stepladder.cli.playing import END_S, Shutter, Tally, make_policy, play
from stepladder.configs.checks import Count, CountOrZero, Positive
from stepladder.configs.codec import Config
from stepladder.games.drawing import Picture
from stepladder.games.drawing.canvas import resized
from stepladder.games.drawing.film import MARK, check_film, write_film
from stepladder.games.drawing.packages import keeping_signals
from stepladder.games.drawing.window import Window, require_screen

USUAL_RATE = 30.0
"""Steps per second of an env that does not say."""

MOST_FPS, MOST_GIF_FPS = 60.0, 30.0
"""There are no more pictures per second unless somebody asks for them."""


@dataclass(frozen=True, kw_only=True)
class WatchArguments(Config):
    """Play an env in a window, or into a film.

    Of a run, its env is played, with tasks that its curriculum would draw now, by the policy that
    was learnt.
    """

    env_or_run: tyro.conf.Positional[str]
    """A Gymnasium id, such as CartPole-v1; module:id, if importing the module registers it; a
    function that makes an env, as module:function; the file of a level; or the folder of a run."""

    out: Path | None = None
    """The film to write: a .gif or .mp4. Without it a window is opened."""

    episodes: Count = 1
    """How many episodes to play."""

    seed: CountOrZero = 0
    """Seed of the first episode, of the actions and of a run's tasks."""

    policy: str | None = None
    """Who plays: random; idle; scripted or planner, the env's own expert; learnt, the run's own
    policy; the folder of a run, a checkpoint or a file of weights; or module:function, which is
    given the env and returns a function from observation to action. By default what the run has
    learnt, else the expert where there is one, else random."""

    env: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """An argument of the env as KEY=VALUE, such as mode=TRAIN_SHOOTING; may be given several
    times."""

    fps: Positive | None = None
    """Pictures per second, at most one per step; with fewer, steps are left out and the speed of
    play stays. By default no more than 60, in a GIF 30."""

    scale: Positive = 1.0
    """What pictures are enlarged by."""

    max_steps: Count = 2000
    """Steps after which an episode is cut off."""

    trust: bool = False
    """Whether modules that the run names may be imported, which runs their code. Only if you trust
    where the run came from."""


def main(argv: Sequence[str]) -> int:
    """Run the verb; return the exit code."""
    arguments = parse(WatchArguments, argv, "watch")
    # Before an env is made, which may take its time.
    if arguments.out is None:
        require_screen()
    else:
        check_film(arguments.out, fps=1.0)
        console.refuse_foreign(arguments.out, MARK, "--out")
    # Envs of other libraries take a screen even where nothing is shown.
    with keeping_signals():
        playable = find_playable(
            arguments.env_or_run, arguments.env, arguments.seed, trust=arguments.trust
        )
        try:
            console.say(_played(playable, arguments))
        finally:
            playable.env.close()
    return 0


def _played(playable: Playable, arguments: WatchArguments) -> str:
    """Play, show or film; return what came of it in one line."""
    playable.env.action_space.seed(arguments.seed)
    rate = float(playable.env.metadata.get("render_fps") or USUAL_RATE)
    fps = _fps(arguments, rate)
    tally = Tally()
    pictures = play(
        playable,
        make_policy(arguments.policy, playable),
        num_episodes=arguments.episodes,
        max_steps=arguments.max_steps,
        seed=arguments.seed,
        shutter=Shutter(rate, fps),
        end_pictures=round(END_S * fps),
        tally=tally,
    )
    scaled = (resized(picture, arguments.scale) for picture in pictures)
    if arguments.out is None:
        _show(scaled, Window(playable.name, fps))
    else:
        _write(arguments.out, scaled, fps, tally)
    return _summary(arguments.out, tally, fps)


def _fps(arguments: WatchArguments, rate: float) -> float:
    """Return how many pictures a second there are."""
    if arguments.fps is not None:
        return min(arguments.fps, rate)
    is_gif = arguments.out is not None and arguments.out.suffix.lower() == ".gif"
    # A whole number of steps between two pictures, so that movements stay even.
    return rate / math.ceil(rate / (MOST_GIF_FPS if is_gif else MOST_FPS))


def _write(out: Path, pictures: Iterable[Picture], fps: float, tally: Tally) -> None:
    """Write a film, telling whoever looks on how far it is."""
    aside = console.asides()
    if aside is None:
        write_film(out, pictures, fps)
        return
    with aside.status("playing") as status:
        write_film(out, _telling(pictures, status.update, tally), fps)


def _telling(
    pictures: Iterable[Picture], tell: Callable[[str], None], tally: Tally
) -> Iterator[Picture]:
    for picture in pictures:
        tell(f"episode {tally.num_episodes + 1}, {tally.num_pictures} pictures")
        yield picture


def _show(pictures: Iterable[Picture], window: Window) -> None:
    """Show pictures until there are no more, or somebody closes the window."""
    try:
        for picture in pictures:
            window.show(picture)
            if not window.is_open:
                break
    finally:
        window.close()


def _summary(out: Path | None, tally: Tally, fps: float) -> str:
    parts = [
        _counted(tally.num_pictures, "picture"),
        f"{tally.num_pictures / fps:.1f} s",
        _counted(tally.num_episodes, "episode"),
    ]
    if tally.num_judged:
        parts.append(f"{tally.num_successes} of {tally.num_judged} succeeded")
    return f"{'window' if out is None else out}: {', '.join(parts)}"


def _counted(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"
