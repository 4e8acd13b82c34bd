"""``stepladder eval``: how well a policy plays what it was not trained on."""

import json
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tyro
from gymnasium.spaces import Box, Space

from stepladder.cli import console
from stepladder.cli.finding import guarded, learning, look_for
from stepladder.cli.parsing import parse
from stepladder.cli.playable import read_settings
from stepladder.cli.scoreboard import scoreboard
from stepladder.configs.checks import require_whole
from stepladder.errors import ConfigError
from stepladder.runs.trust import require_trust
from stepladder.training.config import SCRIPTED
from stepladder.training.contradictions import HOCKEY, LEDGE
from stepladder.training.evaluation import Player, PlayerMaker, Random, evaluate, spaces_of
from stepladder.training.evaluation_request import EvaluationRequest
from stepladder.training.forces import InForces, fineness_of
from stepladder.training.scores import Evaluation

if TYPE_CHECKING:
    from stepladder.cli.learnt import Learnt

MARK = '"stepladder": "evaluation"'
"""What every file of this command holds."""

RANDOM: Random = "random"
"""Who plays without having learnt anything."""

RESERVED = (*SCRIPTED, RANDOM)
"""Opponents who need not be found."""

USUAL = ("weak", "strong")
"""Whom hockey is played against unless somebody is named."""


@dataclass(frozen=True, kw_only=True)
class EvalArguments:
    """Measure how well a policy plays what it was not trained on.

    Ledge: the held-out levels. Hockey: whole games against each opponent, half from each starting
    side. Any other env: as it comes, with other seeds than in training. All of it is played at
    once; the same seed gives the same result.
    """

    policy: tyro.conf.Positional[str]
    """Folder of a run, for its newest policy; a checkpoint in it; a file of weights; or random."""

    episodes: int | None = None
    """Games per opponent or in all. By default as many as the run's own evaluations have, else
    200. A level of Ledge is played once unless the policy is stochastic."""

    opponents: tuple[str, ...] = ()
    """In hockey: weak, strong, random, or another policy, named like the first. By default weak and
    strong."""

    stages: tuple[str, ...] = ()
    """In Ledge: whose held-out levels are played. By default those that the run practises."""

    seed: int = 10_000
    """Seed of the games."""

    device: str = "cpu"
    """Where the networks are: cpu, cuda, cuda:1, or auto."""

    stochastic: bool = False
    """Whether everybody draws actions, instead of doing what seems best."""

    env_id: str | None = None
    """Gymnasium's id of the env, module:id or module:function. By default the one of the run."""

    env: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """An argument of the env as KEY=VALUE; may be given several times."""

    trust: bool = False
    """Whether modules that the run names may be imported, which runs their code. Only if you trust
    where the run came from."""

    each: bool = False
    """Whether to show every single level or task too."""

    out: Path | None = None
    """A file to write the whole evaluation to, as JSON."""

    json: bool = False
    """Whether to write one line of JSON, and nothing else to standard output."""

    def __post_init__(self) -> None:
        require_whole("seed", self.seed, 0)
        if self.episodes is not None:
            require_whole("episodes", self.episodes, 1)


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
    """Return what is to be played, as the run has it and the arguments say."""
    config = None if subject == RANDOM else subject.config
    env = arguments.env_id or (None if config is None else config.env)
    if env is None:
        raise ConfigError(
            f"{arguments.policy} lies in no run, so nobody knows what it plays. Say it with "
            "--env-id, such as stepladder/Hockey-v0."
        )
    if subject != RANDOM and subject.run is not None and arguments.env_id is None:
        require_trust(subject.run.folder, subject.run.config, arguments.trust)
    look_for(env)
    if config is not None and config.env == env:
        request = EvaluationRequest.of(config)
    else:
        request = EvaluationRequest(env=env)
    for flag, home in (("opponents", HOCKEY), ("stages", LEDGE)):
        if getattr(arguments, flag) and request.name != home:
            raise ConfigError(f"--{flag} is for {home}; this is {request.name}. Leave it out.")
    return replace(
        request,
        env_kwargs={**request.env_kwargs, **read_settings(arguments.env)},
        num_games=arguments.episodes or request.num_games,
        stages=arguments.stages or request.stages,
        seed=arguments.seed,
        is_deterministic=not arguments.stochastic,
    )


def _evaluated(
    arguments: EvalArguments, request: EvaluationRequest, subject: "Learnt | Random"
) -> Evaluation:
    """Find everybody who plays, and let them."""
    others = _others(arguments.opponents or USUAL) if request.name == HOCKEY else {}
    rivals: dict[str, Learnt | Random] = {
        name: one for name, one in others.items() if one is not None
    }
    if request.name == HOCKEY:
        kwargs = _with_actions(request.env_kwargs, [subject, *rivals.values()])
        request = replace(request, opponents=tuple(others), env_kwargs=kwargs)
    spaces = guarded(request.name, spaces_of, request)
    maker = partial(_maker, arguments, request, *spaces)
    makers = {
        # Somebody against themselves shall not draw the same actions on both sides.
        name: maker(one, arguments.seed + number)
        for number, (name, one) in enumerate(rivals.items(), start=1)
    }
    player = maker(subject, arguments.seed)
    aside = console.asides()
    with nullcontext() if aside is None else aside.status("playing"):
        return guarded(request.name, evaluate, player, request, rivals=makers)


def _others(texts: Sequence[str]) -> "dict[str, Learnt | Random | None]":
    """Return opponents by what they are called; None where the env plays them itself."""
    others: dict[str, Learnt | Random | None] = {}
    for text in texts:
        if text in RESERVED and text in others:
            raise ConfigError(f"the opponent {text} was given twice. Name each once.")
        one = None if text in SCRIPTED else _found(text)
        if one is None or one == RANDOM:
            others[text] = one
            continue
        name, number = one.name, 1
        # Runs of one name are told apart, and from whoever is always called so.
        while name in (*RESERVED, *others):
            number += 1
            name = f"{one.name} {number}"
        others[name] = one
    return others


def _with_actions(
    kwargs: Mapping[str, Any], players: "Sequence[Learnt | Random]"
) -> dict[str, Any]:
    """Return arguments of hockey with the actions that all know; forces where they differ."""
    choices = {one.num_choices for one in players if one != RANDOM}
    if not choices:
        return dict(kwargs)
    kept = {name: value for name, value in kwargs.items() if name not in ("actions", "fineness")}
    count = choices.pop()
    if choices or count is None:
        return kept
    return {**kept, "actions": "discrete", "fineness": fineness_of(count)}


def _maker(
    arguments: EvalArguments,
    request: EvaluationRequest,
    seen: Space[Any],
    done: Space[Any],
    one: "Learnt | Random",
    seed: int,
) -> PlayerMaker | Random:
    """Return what lets somebody play, if it fits."""
    if one == RANDOM:
        return RANDOM
    # In hockey, numbered actions that the env does not take are translated.
    is_translated = request.name == HOCKEY and one.num_choices is not None and isinstance(done, Box)
    one.require_fit(request.name, seen, None if is_translated else done)

    def make(num_rows: int) -> Player:
        player = one.player(num_rows, device=arguments.device, seed=seed)
        return InForces(player, fineness_of(one.num_choices or 0)) if is_translated else player

    return make
