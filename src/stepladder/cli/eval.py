"""``stepladder eval``: how well a policy plays what it was not trained on."""

import json
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tyro
from gymnasium.spaces import Space

from stepladder.cli.inputs.finding import guarded, learning, look_for
from stepladder.cli.inputs.parsing import parse, read_checkpoint, read_settings
from stepladder.cli.output import console
from stepladder.cli.output.scoreboard import scoreboard
from stepladder.configs.checks import NotNegativeInteger, PositiveInteger
from stepladder.configs.codec import Config
from stepladder.envs.ids import game_of
from stepladder.errors import ConfigError
from stepladder.pictures import check_picture
from stepladder.runs.checkpoint_choice import LAST
from stepladder.runs.evaluation_events import ends_of, figure_of, scores_by_way
from stepladder.runs.trust import names_of_code, require_trust
from stepladder.training.evaluation import (
    InOneWay,
    PlayerLike,
    PlayerMaker,
    Random,
    evaluate,
    spaces_of,
)
from stepladder.training.evaluation.request import EvaluationRequest
from stepladder.training.evaluation.scores import WAYS_IN_WORDS, Evaluation, Way
from stepladder.training.pretrained import find_pretrained

if TYPE_CHECKING:
    from stepladder.cli.output.learnt import Learnt

FIGURES_MARK = '"stepladder": "evaluation"'
"""Text that every file of figures of this command holds."""

PICTURE_MARK = "made by stepladder eval"
"""Text that every picture of this command holds."""

RANDOM: Random = "random"
"""The policy that draws all actions at random."""


@dataclass(frozen=True, kw_only=True)
class EvalArguments(Config):
    """Evaluate a policy on tasks and games that it was not trained on.

    A built-in game is played on its held-out levels, or as whole games against each opponent, half
    from each starting side. Other envs are played with their tasks, or as they are, with other
    seeds than in training. The same seed gives the same games, whatever else is named.
    """

    policy: tyro.conf.Positional[str | None] = None
    """Folder of a run (its newest policy), a checkpoint in it, a file of weights, or random."""

    pretrained: str | None = None
    """Instead: the name of a policy that comes with the package; any other word lists them."""

    checkpoint: str = LAST
    """Which policy of the run is played: last, the newest; best, that of its best evaluation so
    far; or the step of a checkpoint."""

    episodes: PositiveInteger | None = None
    """Games per label or opponent, at least. By default as many as in the run's own evaluations,
    else 200. Best actions play each held-out level once: again would be the same game."""

    opponents: tuple[str, ...] = ()
    """In a game for two: scripted players (weak, strong), random, or other policies, named like
    the first. By default the scripted players."""

    labels: tuple[str, ...] = ()
    """Labels of the tasks to play, such as stages. By default those that the run practises."""

    levels: str | None = None
    """Which of the game's own held-out sets is played, where it has several: validation, which
    trainings use too and which is the default, or test, for final tables."""

    seed: NotNegativeInteger | None = None
    """Seed of the games; by default that of the run's own evaluations, else 10000."""

    device: str = "cpu"
    """Device of the networks: cpu, cuda, cuda:1, or auto."""

    drawn: bool = False
    """Only the policy's drawn actions. By default drawn and best actions are played, and random
    play beside them."""

    best: bool = False
    """Only the policy's best actions."""

    env_id: str | None = None
    """Gymnasium id of the env, module:id or module:function. By default the env of the run; another
    one is played with the run's tasks."""

    env: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """An argument of the env as KEY=VALUE; may be given several times."""

    trust: bool = False
    """Allow imports of modules that the run names, which runs their code. Use it only if you trust
    where the run came from."""

    each: bool = False
    """Show every single level or task too."""

    out: Path | None = None
    """File to write the whole evaluation to, as JSON; none by default."""

    picture: Path | None = None
    """File for a picture of the table, .svg or .png (extra plot); none by default."""

    json: bool = False
    """Write one line of JSON, and nothing else to standard output."""


def main(argv: Sequence[str]) -> int:
    """Run the verb; return the exit code."""
    arguments = parse(EvalArguments, argv, "eval")
    if arguments.drawn and arguments.best:
        raise ConfigError("--drawn and --best exclude each other; without either, both are shown.")
    if arguments.out is not None:
        console.refuse_foreign(arguments.out, FIGURES_MARK, "--out")
    if arguments.picture is not None:
        check_picture(arguments.picture)
        console.refuse_foreign(arguments.picture, PICTURE_MARK, "--picture")
    checkpoint = read_checkpoint(arguments.checkpoint)
    subject = _subject(arguments, checkpoint)
    evaluation = _evaluated(arguments, _request(arguments, subject), subject)
    name = RANDOM if subject == RANDOM else f"{subject.name} ({subject.kind})"
    step = None if subject == RANDOM else subject.saved.step
    document = {"stepladder": "evaluation", "policy": name, "step": step}
    document |= evaluation.to_json()
    if arguments.out is not None:
        console.write_whole(arguments.out, json.dumps(document, indent=2, allow_nan=False) + "\n")
    if arguments.picture is not None:
        _draw(document, f"{name} on {evaluation.env}", arguments.picture)
    if arguments.json:
        console.print_json(document)
        return 0
    moment = "" if subject == RANDOM else subject.moment
    console.say(f"{name} on {_described(evaluation, moment)}")
    console.results().print(scoreboard(evaluation, in_full=arguments.each))
    if arguments.picture is not None:
        console.say(f"picture: {arguments.picture}")
    return 0


def _draw(document: Mapping[str, Any], title: str, path: Path) -> None:
    """Write the picture of an evaluation."""
    from stepladder.pictures.evaluation import evaluation_figure

    by_way = scores_by_way(document)
    own = next(iter(by_way))
    figure = evaluation_figure(
        {
            way: {name: ends_of(score) for name, score in by_way[way].items()}
            for way in WAYS_IN_WORDS
            if way in by_way
        },
        title=title,
        own=None if own == RANDOM else own,
        note=f"{figure_of(by_way[own])}, with intervals of 95 %",
        is_share=all(score.get("rate") for one in by_way.values() for score in one.values()),
    )
    figure.save(path, PICTURE_MARK)


def _described(evaluation: Evaluation, moment: str) -> str:
    """Return what was played, in one line; the moment is that of the policy."""
    games = f"{evaluation.num_games:,} game{'' if evaluation.num_games == 1 else 's'}"
    manner = (
        f"own way: {WAYS_IN_WORDS[evaluation.way]}"
        if evaluation.beside
        else WAYS_IN_WORDS[evaluation.way]
    )
    levels = "" if evaluation.levels is None else f"levels of {evaluation.levels}"
    parts = (moment, games, manner, levels, f"seed {evaluation.seed}")
    return f"{evaluation.env}: {', '.join(filter(None, parts))}"


def _subject(arguments: EvalArguments, checkpoint: str | int) -> "Learnt | Random":
    """Return whose games these are."""
    if arguments.pretrained is None and arguments.policy is not None:
        return _found(arguments.policy, checkpoint, arguments.trust)
    if arguments.pretrained is None or arguments.policy is not None:
        count = "no policy was" if arguments.policy is None else "two policies were"
        raise ConfigError(
            f"{count} given, and one can be evaluated. Name the folder of a run, a file of weights "
            "or random, or give --pretrained NAME."
        )
    if checkpoint != LAST:
        raise ConfigError(
            f"a pre-trained policy has no checkpoint {checkpoint!r}. Leave --checkpoint out."
        )
    return learning().pretrained_learnt(find_pretrained(arguments.pretrained))


def _found(text: str, checkpoint: str | int, trust: bool) -> "Learnt | Random":
    if text != RANDOM:
        return learning().find_learnt(text, checkpoint, trust=trust)
    if checkpoint != LAST:
        raise ConfigError(
            f"random play has no checkpoint {checkpoint!r}. Name a run, or leave --checkpoint out."
        )
    return RANDOM


def _request(arguments: EvalArguments, subject: "Learnt | Random") -> EvaluationRequest:
    """Return what is played: as in the run, changed by the arguments."""
    config = None if subject == RANDOM else subject.config
    env = arguments.env_id or (None if config is None else config.env)
    if env is None:
        raise ConfigError(
            f"{arguments.policy} is not part of a run, so its env is not known. Name the env with "
            "--env-id, such as CartPole-v1."
        )
    if subject != RANDOM and subject.run is not None:
        # An env that is named here need not be imported as the run says.
        unknown = dict(subject.run.config)
        if arguments.env_id is not None:
            unknown["env"] = None
        require_trust(subject.run.folder, unknown, arguments.trust)
        look_for(*names_of_code(unknown))
    look_for(env)
    plain = EvaluationRequest(env=env)
    request = plain if config is None else EvaluationRequest.of(config, env)
    if arguments.opponents and not game_of(env).opponents:
        raise ConfigError(
            f"--opponents is for games for two players; {request.name} has one. Leave it out."
        )
    return replace(
        request,
        env_kwargs={**request.env_kwargs, **read_settings(arguments.env)},
        num_games=arguments.episodes or request.num_games,
        labels=arguments.labels or request.labels,
        levels=arguments.levels,
        seed=request.seed if arguments.seed is None else arguments.seed,
    )


def _evaluated(
    arguments: EvalArguments, request: EvaluationRequest, subject: "Learnt | Random"
) -> Evaluation:
    """Find all players, and let them play."""
    game = game_of(request.env)
    others: dict[str, Learnt | Random | None] = {}
    if game.opponents:
        named = arguments.opponents or game.usual_opponents
        others = _others(named, game.opponents, arguments.trust)
    rivals: dict[str, Learnt | Random] = {
        name: one for name, one in others.items() if one is not None
    }
    players = [one for one in (subject, *rivals.values()) if one != RANDOM]
    if others:
        kwargs = game.shared_arguments(request.env_kwargs, [one.num_choices for one in players])
        request = replace(request, opponents=tuple(others), env_kwargs=kwargs)
    spaces = guarded(request.name, spaces_of, request)
    player = _maker(arguments, request, spaces, subject)
    # Two players of one policy must not draw the same actions, so opponents have another seed.
    named = {
        name: _maker(arguments, request, spaces, one, is_rival=True) for name, one in rivals.items()
    }
    # Also where random play meets a policy.
    threads = players[0].threads() if players else nullcontext()
    with threads, console.progress("playing") as tell:

        def played(way: Way) -> Evaluation:
            tell(f"playing: {WAYS_IN_WORDS[way]}")
            asked = replace(request, is_deterministic=way == "best")
            who = RANDOM if way == RANDOM else player
            return guarded(request.name, evaluate, who, asked, rivals=named)

        own, *beside = map(played, _ways(arguments, subject))
    return replace(own, beside=tuple(beside))


def _ways(arguments: EvalArguments, subject: "Learnt | Random") -> tuple[Way, ...]:
    """Return in which ways the games are played; the one that counts is the first."""
    if subject == RANDOM:
        return (RANDOM,)
    if arguments.drawn or arguments.best:
        return ("drawn",) if arguments.drawn else ("best",)
    return (subject.own_way, "best" if subject.own_way == "drawn" else "drawn", RANDOM)


def _others(
    texts: Sequence[str], scripted: Sequence[str], trust: bool
) -> "dict[str, Learnt | Random | None]":
    """Return opponents by name; None for the scripted ones, which the env plays itself."""
    reserved = (*scripted, RANDOM)
    others: dict[str, Learnt | Random | None] = {}
    for text in texts:
        if text in reserved and text in others:
            raise ConfigError(f"the opponent {text} is given twice. Name each once.")
        one = None if text in scripted else _found(text, LAST, trust)
        if one is None or one == RANDOM:
            others[text] = one
            continue
        name, number = one.name, 1
        # Runs with the same or a reserved name get numbers.
        while name in (*reserved, *others):
            number += 1
            name = f"{one.name} {number}"
        others[name] = one
    return others


def _maker(
    arguments: EvalArguments,
    request: EvaluationRequest,
    spaces: tuple[Space[Any], Space[Any]],
    one: "Learnt | Random",
    *,
    is_rival: bool = False,
) -> PlayerMaker | Random:
    """Return what makes a player; raise unless the policy fits the env's spaces.

    A rival acts in its own way whatever the others do.
    """
    if one == RANDOM:
        return RANDOM
    seen, done = spaces
    # Actions that the env does not have are translated where the game can.
    translator = game_of(request.env).translator(one.num_choices, done)
    one.require_fit(request.name, seen, done if translator is None else None)

    def make(num_rows: int) -> PlayerLike:
        seed = request.seed + is_rival
        player = one.player(num_rows, device=arguments.device, seed=seed)
        translated = player if translator is None else translator(player)
        return InOneWay(translated, one.own_way == "best") if is_rival else translated

    return make
