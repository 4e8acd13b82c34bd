"""What an agent is for: which tasks count, and how much.

A setting of every curriculum (`config`). `targeting` turns it into a number per slot, by which the
plan leans to tasks that count. Here is only what a user gives, in any of the usual forms.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, cast

from stepladder.configs.checks import NotNegative, not_empty
from stepladder.configs.codec import UNREAD, Config
from stepladder.configs.problems import Problems
from stepladder.errors import ConfigError, shown
from stepladder.files import parsed_json


@dataclass(frozen=True, kw_only=True)
class Target(Config):
    """Labels or names of the tasks that count, each with a weight; all others do not count.

    A list of names, or one name, stands for weights of 1: ``target=("medium",)``. In JSON it is
    such a list, or an object from name to weight.
    """

    weights: Annotated[dict[str, NotNegative], not_empty]
    """How much the tasks with a label, or of a name, count. Only the proportions matter."""

    @classmethod
    def expand(cls, value: Any, problems: Problems) -> Any:
        """Return the object that a name, a list of names or plain weights stand for."""
        if isinstance(value, str):
            value = (value,)
        if isinstance(value, list | tuple):
            names = cast("Sequence[Any]", value)
            if not names or not all(isinstance(name, str) for name in names):
                problems.add(
                    f"must name labels or tasks, such as ['medium']; got {shown(list(names))}."
                )
                return UNREAD
            return {"weights": dict.fromkeys(names, 1.0)}
        if isinstance(value, Mapping):
            given = cast("Mapping[Any, Any]", value)
            # A label may be called "weights", too; it has a number then.
            is_whole = len(given) == 1 and isinstance(given.get("weights"), Mapping)
            return given if is_whole else {"weights": given}
        return value

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Yield weights of which none is above 0."""
        if not any(self.weights.values()):
            yield "weights", "must have a weight above 0; all are 0. Raise one."

    def to_json(self) -> dict[str, Any]:
        """Return the weights by name."""
        return dict(self.weights)

    @property
    def relative(self) -> dict[str, float]:
        """The weights by name, the largest being 1."""
        most = max(self.weights.values())
        return {name: weight / most for name, weight in self.weights.items()}

    # On the command line.

    @classmethod
    def from_words(cls, words: Sequence[str]) -> "Target":
        """Return the target that words stand for: NAME or NAME=WEIGHT.

        Raises:
            ConfigError: A weight is not a number.
        """
        weights: dict[str, Any] = {}
        for word in words:
            name, equals, weight = word.rpartition("=")
            try:
                weights[name if equals else word] = parsed_json(weight) if equals else 1.0
            except ValueError:
                raise ConfigError(
                    f"target must be NAME or NAME=WEIGHT; got {word!r}. Write it as medium=2.5."
                ) from None
        return cls(weights=weights)

    def words(self) -> list[str]:
        """Return the words that `from_words` takes."""
        return [f"{name}={weight:g}" for name, weight in self.weights.items()]

    def __str__(self) -> str:
        if len(set(self.weights.values())) == 1:
            return ", ".join(self.weights)
        return ", ".join(f"{name} ({weight:g})" for name, weight in self.weights.items())
