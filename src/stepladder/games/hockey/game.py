"""Hockey as a `Game`: opponents, symmetry, evaluation, and checks of what tasks and phases say.

Found through `games.registry` by trainings, evaluations and commands. The env itself would refuse
the same settings, but only when a task is first drawn, which may be hours later.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.spaces import Box, Space

from stepladder.curricula.config import CurriculumConfig
from stepladder.curricula.phased.settings import Mixed, Ramp
from stepladder.errors import ConfigError, TaskError, nearest
from stepladder.games.game import Game, Symmetry
from stepladder.games.hockey.actions import InForces, control_table, fineness_of
from stepladder.games.hockey.task import (
    CALLER_OPPONENT,
    DEFAULTS,
    OPPONENTS,
    TaskRecord,
    write_task,
)
from stepladder.games.programme import Fixture, Programme
from stepladder.tasks import Task

if TYPE_CHECKING:
    from stepladder.training.config import TrainingConfig
    from stepladder.training.evaluation import EvaluationRequest

HOCKEY_ENV = "stepladder/Hockey-v0"

PUCK_SIDES = ("one", "two")
"""Whose half the puck starts in."""

THE_GAME = {
    **{
        name: DEFAULTS[name] for name in DEFAULTS if name not in ("opponent", "keep_mode", "starts")
    },
    "success": "win",
}
"""The whole game, whatever defaults the envs of a training have."""

VIEW_SIGNS = tuple(-1.0 if i in (1, 2, 4, 5, 7, 8, 10, 11, 13, 15) else 1.0 for i in range(18))
"""In the mirror, sideways positions and velocities, angles and spins change sign."""

FORCE_SIGNS = (1.0, -1.0, -1.0, 1.0)
"""So do the sideways force and the torque of an action."""


class Hockey(Game):
    """Two rackets and a puck; the same from either side line."""

    opponents = tuple(name for name in OPPONENTS if name != "caller")
    usual_opponents = ("weak", "strong")
    is_finite = True
    time_limit_argument = "time_limit"
    keys = MappingProxyType(
        {"arrows": "move", "a and d": "turn", "space": "shoot the puck that you hold"}
    )

    def training_arguments(self, gamma: float) -> dict[str, Any]:
        """Return arguments without infos about tasks, which a training does not read."""
        return {"task_infos": False}

    def symmetry(self, env_kwargs: Mapping[str, Any]) -> Symmetry:
        """Return the rink mirrored along its length."""
        if env_kwargs.get("actions") == "discrete":
            swaps = mirrored_choices(env_kwargs.get("fineness", 1))
            return Symmetry(VIEW_SIGNS, action_swaps=tuple(swaps))
        return Symmetry(VIEW_SIGNS, action_signs=FORCE_SIGNS)

    def programme(
        self, request: "EvaluationRequest", env_kwargs: Mapping[str, Any], rivals: Collection[str]
    ) -> Programme:
        """Return whole games against each opponent, half of them from each starting side.

        All opponents are played from the same starts.

        Raises:
            ConfigError: An opponent is unknown or named twice, or the number of games is odd.
        """
        opponents, num_games = request.opponents or self.usual_opponents, request.num_games
        if request.labels:
            raise ConfigError(
                f"labels are {list(request.labels)}, and {HOCKEY_ENV} is evaluated by opponent. "
                "Leave them out."
            )
        if len(set(opponents)) < len(opponents):
            raise ConfigError(f"opponents must differ; got {list(opponents)}. Name each once.")
        if num_games % 2:
            raise ConfigError(
                f"num_games must be even in hockey, so that both sides start equally often; got "
                f"{num_games}. Use {num_games + 1}."
            )
        fixtures: list[Fixture] = []
        for opponent in opponents:
            is_rival = opponent in rivals
            if not is_rival and OPPONENTS.get(opponent, (CALLER_OPPONENT,))[0] == CALLER_OPPONENT:
                raise ConfigError(
                    f"there is no opponent {opponent!r}; expected weak, strong"
                    f"{''.join(f', {name}' for name in rivals)}. Correct the name."
                )
            for number, side in enumerate(PUCK_SIDES):
                params = {**THE_GAME, "opponent": "caller" if is_rival else opponent}
                fixtures.append(
                    Fixture(
                        group=opponent,
                        part=f"starts={side}",
                        num_games=num_games // 2,
                        first_seed=request.seed + number * (num_games // 2),
                        task=Task(
                            f"{opponent}, starts={side}", opponent, params | {"starts": side}
                        ),
                        rival=opponent if is_rival else None,
                    )
                )
        has_rivals = any(opponent in rivals for opponent in opponents)
        kwargs = {**env_kwargs, "players": "both" if has_rivals else "one"}
        kwargs.pop("opponent", None)
        return Programme(fixtures=tuple(fixtures), env_kwargs=kwargs, is_match=True)

    def shared_arguments(
        self, env_kwargs: Mapping[str, Any], num_choices: Collection[int | None]
    ) -> dict[str, Any]:
        """Return arguments with the actions that all players have; forces if they differ."""
        if not num_choices:
            return dict(env_kwargs)
        kept = {
            name: value for name, value in env_kwargs.items() if name not in ("actions", "fineness")
        }
        first, *others = set(num_choices)
        if others or first is None:
            return kept
        return {**kept, "actions": "discrete", "fineness": fineness_of(first)}

    def translator(
        self, num_choices: int | None, action_space: Space[Any]
    ) -> Callable[[Any], Any] | None:
        """Return what turns numbered actions into forces, where the env takes forces."""
        if num_choices is None or not isinstance(action_space, Box):
            return None
        return lambda player: InForces(player, fineness_of(num_choices))

    def action_of_keys(self, held: Collection[str]) -> Any:
        """Return forces along and across the rink, a torque, and whether the puck is shot."""
        pairs = (("left", "right"), ("down", "up"), ("d", "a"))
        forces = [float(more in held) - float(less in held) for less, more in pairs]
        return np.array([*forces, float("space" in held)], np.float32)

    # Checks.

    def check(self, training: "TrainingConfig") -> Iterator[tuple[str, str]]:
        """Yield what hockey would refuse later, with its path."""
        is_discrete = training.env_kwargs.get("actions") == "discrete"
        kind, needed = training.agent.kind, training.agent.action_kind
        if needed == "continuous" and is_discrete:
            yield (
                "agent",
                f"{kind} needs continuous actions and {HOCKEY_ENV} has discrete ones; leave "
                "env_kwargs.actions out.",
            )
        if needed == "discrete" and not is_discrete:
            yield (
                "agent",
                f"{kind} needs discrete actions and {HOCKEY_ENV} has continuous ones; set "
                'env_kwargs.actions to "discrete".',
            )
        if training.evaluation.num_games % 2:
            text = f"must be even, half from either side; got {training.evaluation.num_games}."
            yield "evaluation.num_games", text
        params = {key: value for key, value in training.env_kwargs.items() if key in DEFAULTS}
        yield from _check_params(params, "env_kwargs")
        for index, task in enumerate(training.listed_tasks):
            yield from _check_params(task.params, f"tasks[{index}].params")
        yield from _check_phases(training.curriculum, "curriculum")


HOCKEY = Hockey()


def mirrored_choices(fineness: int) -> list[int]:
    """Return what each discrete action becomes in the mirror.

    Nothing, forces along the rink and the shot stay; forces across and rotations change sides, at
    the same strength.

    Example:
        >>> mirrored_choices(1)
        [0, 1, 2, 4, 3, 6, 5, 7]
    """
    table = control_table(fineness)
    is_mirror = (table[:, None] == table * FORCE_SIGNS).all(axis=2)
    return is_mirror.argmax(axis=0).tolist()


def _check_phases(curriculum: CurriculumConfig, path: str) -> Iterator[tuple[str, str]]:
    for index, phase in enumerate(curriculum.all_phases()):
        where = f"{path}.phases[{index}]"
        yield from _check_params(phase.settings, f"{where}.settings")
        yield from _check_phases(phase.inner(), f"{where}.curriculum")


def _check_params(settings: Mapping[str, Any], path: str) -> Iterator[tuple[str, str]]:
    for name, setting in settings.items():
        if name not in DEFAULTS:
            yield f"{path}.{name}", f"hockey has no such parameter.{nearest(name, DEFAULTS)}"
            continue
        values: tuple[Any, ...] = (setting,)
        if isinstance(setting, Mixed):
            values = setting.values
        elif isinstance(setting, Ramp):
            values = (setting.start, setting.end)
        for value in values:
            try:
                write_task(TaskRecord.zeros()[0], {name: value}, None, "hockey")
            except TaskError as error:
                yield f"{path}.{name}", str(error).removeprefix(f"{name} of task 'hockey' ")
