"""What travels between a node agent and the host: one batch there, one answer back.

Made by `node` and `service`; Ray carries them. A batch holds all records of a node since the last
one, so a call is paid per batch and not per episode.
"""

from dataclasses import dataclass, field

import numpy as np

from stepladder.arrays import Words
from stepladder.plans.record import RECORD_DTYPE, RecordArray


def _no_records() -> RecordArray:
    return np.zeros(0, RECORD_DTYPE)


def _no_words() -> Words:
    return np.zeros(0, np.int64)


@dataclass(frozen=True)
class PlanUpdate:
    """What brings a plan up to date."""

    serial: int
    """Number of the update; the next request names it."""

    sequence: int
    """What the sequence number of the plan is then."""

    places: Words
    """Words of the plan that change."""

    values: Words
    """What they hold then."""


@dataclass(frozen=True)
class Batch:
    """What a node has to say."""

    node: str
    """Ray's id of the node."""

    incarnation: int
    """Which life of the host the agent has joined; a host that was restarted has another one."""

    first: int = 0
    """Number of the first record, among all that the node has ever had."""

    records: RecordArray = field(default_factory=_no_records)
    numbers: Words = field(default_factory=_no_words)
    """Beside each record, which of its env's records it is."""

    texts: dict[int, str] = field(default_factory=dict[int, str])
    """Why a task could not be built, by position in `records`."""

    heads: Words = field(default_factory=lambda: np.zeros((0, 4), np.int64))
    """Envs whose counters changed, one per row: env, started, aborted, next episode."""

    num_envs: int = 0
    """Envs that are played on the node now."""

    serial: int = 0
    """The update of the plan that the node has."""

    is_pressed: bool = False
    """Whether the outbox is filling up, so that a snapshot must free it."""


@dataclass(frozen=True)
class Answer:
    """What the host says to a batch."""

    incarnation: int
    must_join: bool = False
    """Whether the host does not know the node in this life: join it and send again."""

    received: int = 0
    """Records of the node that the host has."""

    durable: int = 0
    """Of these, the ones that its last snapshot holds."""

    plan: PlanUpdate | None = None
    delay_s: float = 0.0
    """How long the agent waits before its next batch."""
