"""``stepladder eval``: how well a policy plays what it was not trained on."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tyro
from gymnasium.spaces import Space

from stepladder.cli import console
from stepladder.cli.finding import guarded, learning, look_for
from stepladder.cli.parsing import parse, read_settings
from stepladder.cli.scoreboard import scoreboard
from stepladder.configs.checks import Count, CountOrZero
from stepladder.configs.codec import Config
from stepladder.envs.ids import game_of
from stepladder.errors import ConfigError
from stepladder.runs.trust import require_trust
from stepladder.training.evaluation import PlayerLike, PlayerMaker, Random, evaluate, spaces_of
from stepladder.training.evaluation.request import EvaluationRequest
from stepladder.training.evaluation.scores import Evaluation

if TYPE_CHECKING:
    from stepladder.cli.learnt import Learnt

MARK = '"stepladder": "evaluation"'
"""Text that every file of this command holds."""

RANDOM: Random = "random"
"""The policy that draws all actions at random."""


@dataclass(frozen=True, kw_only=True)
class EvalArguments(Config):
    """Evaluate a policy on tasks and games that it was not trained on.

    A built-in game is played on its held-out levels, or as whole games against each opponent, half
    from each starting side. Other envs are played with their tasks, or as they are, with other
    seeds than in training. All games run at once; the same seed gives the same result.
    """

    policy: tyro.conf.Positional[str]
    """Folder of a run (its newest policy), a checkpoint in it, a file of weights, or random."""

    episodes: Count | None = None
    """Games per opponent or in all. By default as many as in the run's own evaluations, else
    200. Deterministic policies play each held-out level once."""

    opponents: tuple[str, ...] = ()
    """In a game for two: scripted players (weak, strong), random, or other policies, named like
    the first. By default the scripted players."""

    labels: tuple[str, ...] = ()
    """Labels of the tasks to play, such as stages. By default those that the run practises."""

    seed: CountOrZero = 10_000
    """Seed of the games."""

    device: str = "cpu"
    """Device of the networks: cpu, cuda, cuda:1, or auto."""

    stochastic: bool = False
    """All players draw their actions instead of taking the best one."""

    env_id: str | None = None
    """Gymnasium id of the env, module:id or module:function. By default the env of the run."""

    env: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """An argument of the env as KEY=VALUE; may be given several times."""

    trust: bool = False
    """Allow imports of modules that the run names, which runs their code. Use it only if you trust
    where the run came from."""

    each: bool = False
    """Show every single level or task too."""

    out: Path | None = None
    """File to write the whole evaluation to, as JSON; none by default."""

    json: bool = False
    """Write one line of JSON, and nothing else to standard output."""


def main(argv: Sequence[str]) -> int:
    """Run the verb; return the exit code."""
    arguments = parse(EvalArguments, argv, "eval")
    if arguments.out is not None:
        console.refuse_foreign(arguments.out, MARK, "--out")
    subject = _found(arguments.policy)
    evaluation = _evaluated(arguments, _request(arguments, subject), subject)
    name = RANDOM if subject == RANDOM else f"{subject.name} ({subject.kind})"
    document = {"stepladder": "evaluation", "policy": name, **evaluation.to_json()}
    if arguments.out is not None:
        console.write_whole(arguments.out, json.dumps(document, indent=2, allow_nan=False) + "\n")
    if arguments.json:
        console.print_json(document)
        return 0
    manner = "drawn actions" if arguments.stochastic or subject == RANDOM else "best actions"
    games = f"{evaluation.num_games:,} games, {manner}, seed {evaluation.seed}"
    console.say(f"{name} on {evaluation.env}: {games}")
    console.results().print(scoreboard(evaluation, in_full=arguments.each))
    return 0


def _found(text: str) -> "Learnt | Random":
    return RANDOM if text == RANDOM else learning().find_learnt(text)


def _request(arguments: EvalArguments, subject: "Learnt | Random") -> EvaluationRequest:
    """Return what is played: as in the run, changed by the arguments."""
    config = None if subject == RANDOM else subject.config
    env = arguments.env_id or (None if config is None else config.env)
    if env is None:
        raise ConfigError(
            f"{arguments.policy} is not part of a run, so its env is not known. Name the env with "
            "--env-id, such as CartPole-v1."
        )
    if subject != RANDOM and subject.run is not None and arguments.env_id is None:
        require_trust(subject.run.folder, subject.run.config, arguments.trust)
    look_for(env)
    if config is not None and config.env == env:
        request = EvaluationRequest.of(config)
    else:
        request = EvaluationRequest(env=env)
    if arguments.opponents and not game_of(env).opponents:
        raise ConfigError(
            f"--opponents is for games for two players; {request.name} has one. Leave it out."
        )
    return replace(
        request,
        env_kwargs={**request.env_kwargs, **read_settings(arguments.env)},
        num_games=arguments.episodes or request.num_games,
        labels=arguments.labels or request.labels,
        seed=arguments.seed,
        is_deterministic=not arguments.stochastic,
    )


def _evaluated(
    arguments: EvalArguments, request: EvaluationRequest, subject: "Learnt | Random"
) -> Evaluation:
    """Find all players, and let them play."""
    game = game_of(request.env)
    others: dict[str, Learnt | Random | None] = {}
    if game.opponents:
        others = _others(arguments.opponents or game.usual_opponents, game.opponents)
    rivals: dict[str, Learnt | Random] = {
        name: one for name, one in others.items() if one is not None
    }
    if others:
        players = [one for one in (subject, *rivals.values()) if one != RANDOM]
        kwargs = game.shared_arguments(request.env_kwargs, [one.num_choices for one in players])
        request = replace(request, opponents=tuple(others), env_kwargs=kwargs)
    spaces = guarded(request.name, spaces_of, request)
    # Two players of one policy must not draw the same actions, so each has its own seed.
    player, *makers = (
        _maker(arguments, request, spaces, one, arguments.seed + number)
        for number, one in enumerate((subject, *rivals.values()))
    )
    named = dict(zip(rivals, makers, strict=True))
    with console.progress("playing"):
        return guarded(request.name, evaluate, player, request, rivals=named)


def _others(texts: Sequence[str], scripted: Sequence[str]) -> "dict[str, Learnt | Random | None]":
    """Return opponents by name; None for the scripted ones, which the env plays itself."""
    reserved = (*scripted, RANDOM)
    others: dict[str, Learnt | Random | None] = {}
    for text in texts:
        if text in reserved and text in others:
            raise ConfigError(f"the opponent {text} is given twice. Name each once.")
        one = None if text in scripted else _found(text)
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
    seed: int,
) -> PlayerMaker | Random:
    """Return what makes a player; raise unless the policy fits the env's spaces."""
    if one == RANDOM:
        return RANDOM
    seen, done = spaces
    # Actions that the env does not have are translated where the game can.
    translator = game_of(request.env).translator(one.num_choices, done)
    one.require_fit(request.name, seen, done if translator is None else None)

    def make(num_rows: int) -> PlayerLike:
        player = one.player(num_rows, device=arguments.device, seed=seed)
        return player if translator is None else translator(player)

    return make
