"""What was measured of an env: plain values that can leave the process in which it was played.

Made by `probes`, one part each; read by the checks. A part is None where its probe did not get so
far, and `troubles` says why.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

from stepladder.training.config import TrainingConfig

TroubleKind = Literal["unknown", "not made", "no delivery", "raised", "died", "hung"]


@dataclass(frozen=True, kw_only=True)
class Trouble:
    """What ended a probe before its time."""

    kind: TroubleKind
    probe: str
    """What was being done, such as "stepping the env"."""

    text: str
    """The exception, the signal or the exit code."""

    where: str = ""
    """File, line and function, where that is known."""

    tasks: tuple[str, ...] = ()
    """Names of the tasks that were being played."""


@dataclass(frozen=True, kw_only=True)
class Made:
    """The env as it was made."""

    seconds: float
    """How long it took, the second time."""

    has_tasks: bool
    labels: tuple[str, ...]
    num_tasks: int | None
    needs_success: bool = False
    """Whether the curriculum needs to know which episodes succeeded."""

    declares_randomness: bool
    """Whether its spec says that a seed does not decide everything."""

    is_batched: bool
    """Whether envs are stepped as one batch, without workers."""

    unsupported: tuple[str, ...] = ()
    """Spaces that the agents here cannot learn in, and why."""


@dataclass(frozen=True, kw_only=True)
class Conformity:
    """What Gymnasium's own checker says."""

    warnings: tuple[str, ...]
    failure: str | None
    """The assertion at which it stopped."""

    was_cast: bool
    """Whether observations were first brought to the type that their space declares."""


@dataclass(frozen=True, kw_only=True)
class PlayedEpisode:
    """One episode of random play."""

    task: str
    label: str
    length: int
    total: float
    """Its return."""

    last_reward: float
    best_before: float
    """The largest reward of all steps but the last."""

    terminated: bool
    truncated: bool
    has_ended: bool
    """False if it was given up."""

    success: float | None
    """As the curriculum would read it; None if there is none."""

    success_trouble: str
    """Why it could not be read; empty if it could, or none was needed."""

    info_keys: tuple[str, ...]
    """Of the last info."""


@dataclass(frozen=True, kw_only=True)
class RandomPlay:
    """Episodes of random play over the tasks, in turn."""

    episodes: tuple[PlayedEpisode, ...]
    step_seconds: float
    """Median time of a step."""

    num_steps: int
    not_finite: tuple[str, ...]
    """Where a number was not finite, the first of each kind."""

    outside: tuple[str, ...]
    """Observations that are not in their space, the first of each kind."""

    cast: tuple[str, ...]
    """Observations of another type than their space, whose values fit."""

    unbuilt: tuple[tuple[str, str], ...]
    """Tasks that could not be built, and why."""

    num_tried: int
    """Tasks that were tried."""


@dataclass(frozen=True, kw_only=True)
class RepeatedEpisodes:
    """The same seed and the same actions again. Numbers are steps, from 0, which is the reset."""

    fresh_differs_at: int | None
    """Where an env that was just made differs from another one; None if nowhere."""

    again_differs_at: int | None
    """Where a second episode of the same env differs from its first one."""

    after_others_differs_at: int | None
    """Where an episode differs when one of another task came before it."""

    tasks: tuple[str, ...]
    """Tasks with different params that were compared."""

    num_steps: int
    """Steps of each episode that were compared."""

    num_distinct: int
    """How many different episodes they gave, in envs that were just made."""

    num_distinct_in_turn: int
    """How many different episodes they gave, one after the other in one env."""

    alike: tuple[tuple[str, ...], ...]
    """Groups of tasks that gave the same episodes."""

    digests: tuple[str, ...]
    """One per step of the first task, to compare with another process."""


@dataclass(frozen=True, kw_only=True)
class ComparedRows:
    """A small vector env, in this process and with workers: rows, and how long they take."""

    num_envs: int
    num_workers: int
    differs_at: int | None
    """First vector step whose rows differ; None if none does."""

    num_compared: int
    plain_seconds: float
    """Of a vector step in one process."""

    worker_seconds: float
    """Of the same with workers."""

    largest_lag: int
    """Of the plans of all draws, in collections."""


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """What a curriculum draws when nearly everything succeeds."""

    num_episodes: int
    success: float
    by_label: dict[str, int]
    """Draws of each label of the source."""

    is_complete: bool
    """Whether as many episodes were drawn as the training has."""


@dataclass(kw_only=True)
class EnvEvidence:
    """All that is known of an env."""

    name: str
    config: TrainingConfig
    made: Made | None = None
    conformity: Conformity | None = None
    play: RandomPlay | None = None
    repeats: RepeatedEpisodes | None = None
    elsewhere: RepeatedEpisodes | None = None
    """The same in another process."""

    rows: ComparedRows | None = None
    drawing: Drawing | None = None
    troubles: list[Trouble] = field(default_factory=list[Trouble])
    num_printed: int = 0
    """Lines that it printed."""

    printed: str = ""
    """The beginning of it."""

    memory_left: tuple[str, ...] = ()
    """Names of shared memory that it left behind; removed since."""

    processes_left: tuple[str, ...] = ()
    """Processes that it left behind; ended since."""

    num_cores: int = 1

    def give(self, part: str, value: Any) -> None:
        """Keep what a probe has measured."""
        if value is not None:
            setattr(self, part, value)
