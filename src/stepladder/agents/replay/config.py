"""Settings of agents that learn from stored transitions; `dddqn` and `sac` derive theirs."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from stepladder.agents.network_config import NetworkConfig
from stepladder.configs.checks import NotNegativeInteger, PositiveInteger, Within

DEFAULT_CAPACITY = 1_000_000
"""Transitions that are remembered if `buffer_size` is not set."""

DEFAULT_BYTES = 4 * 2**30
"""Memory that they take at the most."""

UpdatesPerStep = Annotated[float, Within(0.0, 1_000.0, above=True)]
"""With more, a training would never come to its next step."""


@dataclass(frozen=True, kw_only=True)
class ReplayConfig(NetworkConfig):
    """Settings of agents that learn from a memory of transitions."""

    batch_size: PositiveInteger = 256
    """Transitions per update."""

    updates_per_step: UpdatesPerStep = 1.0
    """Updates per env step: the update-to-data ratio, whatever the number of envs."""

    buffer_size: PositiveInteger | None = None
    """Transitions that are remembered; the oldest make room. By default 1,000,000, and fewer where
    observations are so large that these would take more than 4 GiB."""

    warmup_steps: NotNegativeInteger = 1_000
    """Env steps before the first update, and again after the memory was cleared."""

    num_step_returns: PositiveInteger = 1
    """Rewards that are added up before a value is trusted; 1 is plain temporal difference."""

    mirror: bool = False
    """Whether each remembered transition is also learnt from as in a mirror, where the env has
    such a symmetry. Half of all samples are mirrored."""

    def capacity(self, row_bytes: int) -> int:
        """Return how many transitions are remembered, given the bytes of one."""
        if self.buffer_size is not None:
            return self.buffer_size
        return max(self.batch_size, min(DEFAULT_CAPACITY, DEFAULT_BYTES // row_bytes))

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Yield a memory that is smaller than a batch."""
        yield from super().contradictions()
        if self.buffer_size is not None and self.buffer_size < self.batch_size:
            text = f"must be at least batch_size ({self.batch_size}); got {self.buffer_size}."
            yield "buffer_size", f"{text} Raise it."
