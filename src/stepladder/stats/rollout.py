"""From the infos of an epoch to the numbers that are logged.

Envs put what they measure into their infos; `accumulate_rollout_stats` collects it step by step,
`process_training_stats` reduces it at the end of an epoch as `metrics` declares, and `payload`
lays out what `runs` keeps. Simulation and training go through the same three functions and so
emit the same names.

    stats = defaultdict(list)
    ...                                              # after each step
    accumulate_rollout_stats(infos, stats)
    ...                                              # after each epoch
    processed = process_training_stats(stats, losses, experience, config, names=names)
    run.log(agent_step, payload(processed, agent_step, epoch, extra=meter.metrics(), names=names))
    stats.clear()
"""

import logging
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, cast

import numpy as np

from stepladder.errors import ConfigError, shown
from stepladder.stats.flatten import as_number, numbers_in
from stepladder.stats.metrics import Reduction, emitted_name, reduction_of
from stepladder.stats.names import MetricNames
from stepladder.visible import visible

logger = logging.getLogger("stepladder.stats")

REWARD_KEYS = ("reward", "episode/r", "task_dependency/reward")
"""Keys of infos that `overview/reward` is read from; the first one that is there counts."""

_process_names = MetricNames()
"""Used where no names are given."""


@dataclass(frozen=True, kw_only=True)
class ProcessedStats:
    """One epoch, reduced."""

    mean_stats: dict[str, float]
    """Every key of the infos as it was there, reduced as declared (not always by the mean)."""

    losses_stats: dict[str, float]
    """By loss, without a prefix."""

    experience_stats: dict[str, float]
    """By name, without a prefix."""

    environment_stats: dict[str, float]
    """By the name that is logged, such as ``env_maze/coins``."""

    overview: dict[str, float]
    """By name, without a prefix; has ``reward`` if the envs reported one."""

    undeclared: tuple[str, ...]
    """Undeclared names of this epoch that are new; each is reduced by its mean."""


def accumulate_rollout_stats(
    infos: Mapping[str, Any] | Iterable[Any], stats: MutableMapping[str, list[float]]
) -> None:
    """Add every number in the infos of one step to the list of its key, in place.

    Nested dicts are flattened with ``/``; an array or tensor of one element is a number, and so
    is a truth value. Strings, longer arrays, NaN and the like are left out; see `flatten`.

    Args:
        infos: A list with the info of each env, or the one dict of a Gymnasium vector env, in
            which every array has an entry per env and ``_key`` says which envs have it. The
            infos of episodes that ended inside the step (``final_info``) count like any other.
        stats: Lists by key, such as ``defaultdict(list)``. Changed in place.

    Raises:
        ConfigError: There are no infos, or one is nested without end.
    """
    batch: Any = [infos] if isinstance(infos, Mapping) else infos
    if not isinstance(batch, Iterable):
        raise ConfigError(
            f"infos must be the dict of a vector env or a list of dicts; got {shown(batch)}. Pass "
            "what step returned."
        )
    for info in cast("Iterable[object]", batch):
        if isinstance(info, Mapping):
            for key, numbers in numbers_in(cast("Mapping[Any, Any]", info), info is infos):
                if numbers:
                    stats.setdefault(key, []).extend(numbers)


def process_training_stats(
    raw_stats: Mapping[str, Any],
    losses_stats: Mapping[str, Any] | None = None,
    experience: Any = None,
    trainer_config: Any = None,
    *,
    names: MetricNames | None = None,
    reward_keys: Sequence[str] = REWARD_KEYS,
) -> ProcessedStats:
    """Reduce what one epoch has collected; each metric as it was declared, else by its mean.

    Args:
        raw_stats: What `accumulate_rollout_stats` has collected.
        losses_stats: A number or a list of numbers by loss.
        experience: The learner's memory: a mapping, or something with a method ``stats`` that
            returns one. None for none.
        trainer_config: The learner's settings. A loss whose coefficient is 0 in it
            (``<loss>_coef``) was not trained on and is left out. None to keep all.
        names: The names of this run. Without it the whole process shares one set, which is
            right for one run per process only.
        reward_keys: Where `overview/reward` is found.

    Raises:
        ConfigError: What was collected, the losses or the experience is not a mapping.
    """
    raw_stats = _by_text(raw_stats, "raw_stats")
    names = _process_names if names is None else names
    known = len(names.undeclared)
    reported = {key: _numbers(values) for key, values in raw_stats.items()}
    mean_stats = {
        key: _reduce(numbers, reduction_of(emitted_name(key)))
        for key, numbers in reported.items()
        if numbers
    }
    losses = _by_text(losses_stats or {}, "losses_stats")
    of_envs = ((emitted_name(key), numbers) for key, numbers in reported.items())
    reduced = _reduced(chain(of_envs, _of_learner(losses, experience, trainer_config)), names)
    overview = _below("overview/", reduced)
    rewards = next((raw_stats[key] for key in reward_keys if key in mean_stats), None)
    if rewards is not None:
        overview.setdefault("reward", _reduce(_numbers(rewards), Reduction.MEAN))
    undeclared = names.undeclared[known:]
    if undeclared:
        logger.info(
            "Undeclared metrics, reduced by their mean: %s.", visible(", ".join(undeclared))
        )
    return ProcessedStats(
        mean_stats=mean_stats,
        losses_stats=_below("losses/", reduced),
        experience_stats=_below("experience/", reduced),
        environment_stats={
            name: value
            for name, value in reduced.items()
            if not name.startswith(("overview/", "losses/", "experience/"))
        },
        overview=overview,
        undeclared=undeclared,
    )


def payload(
    processed: ProcessedStats | None,
    agent_step: int,
    epoch: int,
    *,
    total_time_s: float | None = None,
    steps_per_second: float | None = None,
    extra: Mapping[str, Any] | None = None,
    names: MetricNames | None = None,
) -> dict[str, float]:
    """Lay out everything that is logged about an epoch as one flat dict.

    Args:
        processed: The epoch; None when no env reported anything.
        agent_step: Env steps so far, those of every env counted: with 8 envs, a vector step is 8.
        epoch: Epochs so far.
        total_time_s: Seconds since the run began; left out when None.
        steps_per_second: As measured; without it, `agent_step` over `total_time_s`.
        extra: More values by name, such as those of `CurriculumMeter.metrics`. They stand
            against values that came through infos under the same name: only the host has the
            curriculum. Values that are not numbers are left out.
        names: The names of this run, as for `process_training_stats`.
    """
    for count in (agent_step, epoch):
        number = as_number(count)
        if number is None or not 0 <= number < math.inf:
            raise ConfigError(
                f"agent_step and epoch count from 0; got {shown(agent_step)} and {shown(epoch)}. "
                "Pass what has been done so far."
            )
    names = _process_names if names is None else names
    logged: dict[str, float] = {}
    if processed is not None:
        for prefix, values in (
            ("", processed.environment_stats),
            ("overview/", processed.overview),
            ("losses/", processed.losses_stats),
            ("experience/", processed.experience_stats),
        ):
            logged |= {f"{prefix}{name}": value for name, value in values.items()}
    given = ((key, as_number(value)) for key, value in _by_text(extra or {}, "extra").items())
    logged |= _reduced(((emitted_name(key), number) for key, number in given), names)
    logged["metric/agent_step"], logged["metric/epoch"] = float(agent_step), float(epoch)
    if total_time_s is not None:
        logged["metric/total_time"] = float(total_time_s)
        if steps_per_second is None and total_time_s > 0.0:
            steps_per_second = agent_step / total_time_s
    if steps_per_second is not None:
        logged["overview/steps_per_second"] = float(steps_per_second)
    return logged


def _of_learner(
    losses: Mapping[str, Any], experience: Any, trainer_config: Any
) -> Iterator[tuple[str, Any]]:
    """Yield losses and statistics of the memory, by the name that is logged."""
    for name, values in losses.items():
        bare = name.removeprefix("losses/")
        if not _is_switched_off(bare, trainer_config):
            yield f"losses/{bare}", values
    for name, values in _by_text(_stats_of(experience), "experience").items():
        yield f"experience/{name.removeprefix('experience/')}", values


def _reduced(values: Iterable[tuple[str, Any]], names: MetricNames) -> dict[str, float]:
    """Return one number per admitted name; what is not a number is left out."""
    collected: dict[str, list[float]] = defaultdict(list)
    for name, entry in values:
        if numbers := _numbers(entry):
            collected[names.admit(name)] += numbers
    return {name: _reduce(numbers, reduction_of(name)) for name, numbers in collected.items()}


def _by_text(values: Mapping[Any, Any], what: str) -> dict[str, Any]:
    """Return the same values by the texts of their keys: names are logged, and may be numbers."""
    if not isinstance(cast("object", values), Mapping):
        raise ConfigError(f"{what} must be a mapping of names; got {shown(values)}. Pass a dict.")
    return {str(key): value for key, value in values.items()}


def _reduce(numbers: Sequence[float], reduction: Reduction) -> float:
    """Make one of at least one number."""
    if reduction is Reduction.LAST:
        return float(numbers[-1])
    array = np.asarray(numbers, dtype=np.float64)
    if reduction is Reduction.SUM:
        return float(array.sum())
    return float(array.max() if reduction is Reduction.MAX else array.mean())


def _numbers(values: object) -> list[float]:
    """Return the numbers among some values, or a single one as a list."""
    single = as_number(values)
    if single is not None:
        return [single]
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        return []
    found = (as_number(value) for value in cast("Iterable[object]", values))
    return [number for number in found if number is not None]


def _below(prefix: str, values: Mapping[str, float]) -> dict[str, float]:
    return {
        name.removeprefix(prefix): value
        for name, value in values.items()
        if name.startswith(prefix)
    }


def _stats_of(experience: Any) -> Mapping[str, Any]:
    if experience is None:
        return {}
    if isinstance(experience, Mapping):
        return cast("Mapping[str, Any]", experience)
    found: Any = getattr(experience, "stats", None)
    found = found() if callable(found) else found
    if isinstance(found, Mapping):
        return cast("Mapping[str, Any]", found)
    raise ConfigError(
        f"experience must be a mapping or have a method stats() that returns one; got "
        f"{experience!r}, whose stats are {found!r}. Pass a dict of numbers, or None."
    )


def _is_switched_off(loss: str, trainer_config: Any) -> bool:
    field = f"{loss}_coef"
    if isinstance(trainer_config, Mapping):
        return cast("Mapping[str, Any]", trainer_config).get(field) == 0
    return getattr(trainer_config, field, None) == 0
