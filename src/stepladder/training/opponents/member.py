"""An agent that can play: its description and weights, without what is only needed to learn.

Past selves, archived agents and single files all become members; `lineup` lets them play.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt
import torch

from stepladder.agents.base import Agent
from stepladder.errors import ConfigError, SnapshotError
from stepladder.saving.saved_fields import read_list
from stepladder.saving.snapshot import Snapshot

SPACES = ("observation_space", "action_space")


@dataclass(frozen=True, eq=False, kw_only=True)
class Member:
    """An agent that can play."""

    name: str
    """Its name: "step 250000", an archive's id, a path."""

    description: Mapping[str, Any]
    """What `Agent.description` returned; plain JSON."""

    weights: Mapping[str, torch.Tensor]
    """What `Agent.weights` returned; never changed in place."""

    step: int = 0
    """Env steps it had learnt from."""

    is_archived: bool = False
    """Whether the name is an id of the archive, so that results count for ratings."""

    @classmethod
    def of_agent(cls, agent: Agent, step: int, name: str) -> "Member":
        """Return an agent as it plays now."""
        return cls(name=name, description=agent.description(), weights=agent.weights(), step=step)


@dataclass(frozen=True)
class SavedMember:
    """A member in a snapshot, without its weights."""

    name: str
    description: dict[str, Any]
    step: int
    is_archived: bool
    weights: tuple[str, ...]
    """Names of the tensors."""


def misfit(description: Mapping[str, Any], wanted: Mapping[str, Any]) -> str | None:
    """Say why one agent cannot play where another does, or None if it can.

    Args:
        description: Of the one.
        wanted: Of the other.
    """
    for part in SPACES:
        theirs, ours = description.get(part), wanted.get(part)
        if theirs != ours:
            return f"its {part} is {_in_words(theirs)}, and here it is {_in_words(ours)}"
    return None


def require_fit(member: Member, wanted: Mapping[str, Any]) -> None:
    """Raise unless a member can play where another agent does.

    Raises:
        ConfigError: The env is not made for it.
    """
    reason = misfit(member.description, wanted)
    if reason:
        raise ConfigError(
            f"opponent {member.name!r} does not fit this training: {reason}. Choose another, or "
            "make the env as it was there (env_kwargs)."
        )


def require_finite(member: Member) -> Member:
    """Return a member, if its weights are all finite.

    Raises:
        SnapshotError: One is not.
    """
    for name, tensor in member.weights.items():
        if not torch.isfinite(tensor).all():
            raise SnapshotError(
                f"opponent {member.name!r} cannot play: its weights {name!r} are not finite. Use "
                "an earlier one."
            )
    return member


def _in_words(space: Any) -> str:
    if not isinstance(space, Mapping):
        return repr(space)
    size = next((space[key] for key in ("n", "nvec", "shape") if key in space), None)
    if size is None:
        parts = space.get("parts")
        size = sorted(parts) if isinstance(parts, Mapping) else "unknown"
    return f"{space.get('space')} {size}"


def save_members(members: Sequence[Member]) -> Snapshot:
    """Return members as plain JSON and arrays; the arrays are their weights, not copies."""
    arrays: dict[str, npt.NDArray[Any]] = {}
    entries: list[dict[str, Any]] = []
    for index, member in enumerate(members):
        names = list(member.weights)
        for name in names:
            arrays[f"{index}/{name}"] = member.weights[name].numpy()
        entries.append(
            {
                "name": member.name,
                "description": dict(member.description),
                "step": member.step,
                "is_archived": member.is_archived,
                "weights": names,
            }
        )
    return Snapshot({"members": entries}, arrays)


def load_members(snapshot: Snapshot) -> list[Member]:
    """Return the members that `save_members` was given, in their order."""
    saved = read_list(SavedMember, snapshot.state["members"], f"members of {snapshot.place}")
    return [
        Member(
            name=entry.name,
            description=entry.description,
            weights={
                # Copied, because arrays from a file may be read-only.
                name: torch.from_numpy(snapshot.arrays[f"{index}/{name}"].copy())
                for name in entry.weights
            },
            step=entry.step,
            is_archived=entry.is_archived,
        )
        for index, entry in enumerate(saved)
    ]
