"""Which values a sweep tries: all combinations, or those that Optuna proposes.

Between `sweep_space` and `sweep`. Trials are numbered, and what a number tries depends on nothing
but the settings and the trials of earlier rounds: a sweep that was killed and continued, or run on
another number of cores, tries the same.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

from stepladder.errors import ConfigError
from stepladder.simulator.sweep_space import Choice, Dimension

Params = dict[str, Any]
Round = list[tuple[int, Params]]
"""Trials that can be played at the same time: their numbers and values."""

Told = tuple[Params, float | None]
"""Values and cost of a finished trial; no cost if the values do not go together."""

ROUND_TRIALS = 8
"""Trials that Optuna proposes at once, from the results of all earlier rounds."""


def grid_rounds(choices: Sequence[Choice]) -> Iterator[Round]:
    """Yield all combinations as one round, the last field varying fastest."""
    combinations = itertools.product(*(choice.values for choice in choices))
    names = [choice.field for choice in choices]
    yield [
        (number, dict(zip(names, values, strict=True)))
        for number, values in enumerate(combinations)
    ]


def optuna_rounds(
    dimensions: Sequence[Dimension],
    num_trials: int,
    seed: int,
    finished: Callable[[], Mapping[int, Told]],
) -> Iterator[Round]:
    """Yield rounds of trials that Optuna's TPE proposes.

    Args:
        dimensions: What is varied.
        num_trials: Trials in all.
        seed: Seed of the proposals.
        finished: Says which trials are finished, by number. Asked before every round.
    """
    optuna = _optuna()
    space = {dimension.field: _distribution(optuna, dimension) for dimension in dimensions}
    choices = {entry.field: entry.values for entry in dimensions if isinstance(entry, Choice)}
    for first in range(0, num_trials, ROUND_TRIALS):
        study = optuna.create_study()
        for number, (params, cost) in sorted(finished().items()):
            if number < first:
                study.add_trial(_past_trial(optuna, space, _encoded(params, choices), cost))
        proposals: Round = []
        for number in range(first, min(first + ROUND_TRIALS, num_trials)):
            # A seed per trial: a generator that runs on could not be continued after a kill.
            study.sampler = optuna.samplers.TPESampler(seed=_mixed(seed, number))
            params = study.ask(space).params
            proposals.append((number, _decoded(params, choices, space)))
        yield proposals


def _optuna() -> ModuleType:
    try:
        optuna = import_module("optuna")
    except ImportError as error:
        raise ConfigError(
            f"a search needs the package optuna, which cannot be imported ({error}). "
            "Install it with: pip install 'stepladder[sweep]'"
        ) from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def _distribution(optuna: ModuleType, dimension: Dimension) -> Any:
    kinds = optuna.distributions
    if isinstance(dimension, Choice):
        # By position: Optuna knows no tuples.
        return kinds.CategoricalDistribution(tuple(range(len(dimension.values))))
    if dimension.whole:
        return kinds.IntDistribution(int(dimension.low), int(dimension.high), log=dimension.log)
    return kinds.FloatDistribution(dimension.low, dimension.high, log=dimension.log)


def _past_trial(
    optuna: ModuleType, space: dict[str, Any], params: Params, cost: float | None
) -> Any:
    states = optuna.trial.TrialState
    state = states.FAIL if cost is None else states.COMPLETE
    return optuna.trial.create_trial(params=params, distributions=space, value=cost, state=state)


def _encoded(params: Params, choices: Mapping[str, tuple[Any, ...]]) -> Params:
    return {
        name: choices[name].index(value) if name in choices else value
        for name, value in params.items()
    }


def _decoded(
    params: Params, choices: Mapping[str, tuple[Any, ...]], space: Mapping[str, Any]
) -> Params:
    return {
        name: choices[name][params[name]] if name in choices else _short(params[name], kind)
        for name, kind in space.items()
    }


def _short(value: float, distribution: Any) -> float:
    """Return a number that can be typed: four digits, and still inside its range."""
    if isinstance(value, int):
        return value
    return min(distribution.high, max(distribution.low, float(f"{value:.4g}")))


def _mixed(seed: int, number: int) -> int:
    return int(np.random.SeedSequence([seed, 3, number]).generate_state(1)[0])
