"""Configs with something wrong in them: refused with a reason, or read and written back alike.

Takes every preset, every curriculum's config, every agent's and the example files as JSON, and
changes one thing or several. Run it longer than the tests do:

    python tests/fuzz/fuzz_configs.py --seconds 600
"""

import argparse
import json
import math
import random
import resource
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepladder.agents.config import AGENTS, AgentConfig
from stepladder.curricula.config import CurriculumConfig
from stepladder.curricula.phased.config import Phase, PhasedConfig
from stepladder.curricula.phased.mixture import MixtureConfig
from stepladder.curricula.phased.settings import Mixed, Ramp
from stepladder.curricula.registry import CURRICULA
from stepladder.curricula.staged.config import (
    DemotionRule,
    EarlyRule,
    Mixing,
    Stage,
    StagedConfig,
    TrendRule,
)
from stepladder.errors import StepladderError
from stepladder.simulator.swept import SweepConfig
from stepladder.sweeps import parse_choice, parse_range
from stepladder.tasks import Task
from stepladder.training.config import TrainingConfig, load_config
from stepladder.training.presets import PRESETS

EXAMPLES = Path(__file__).parents[2] / "examples" / "configs"

LABELS = ("a", "b", "c")
TASKS = [Task(f"{label}{number}", label=label) for label in LABELS for number in range(3)]
"""What curricula are built over."""

MAX_MEMORY = 8 * 2**30
"""Bytes of address space of a run by hand."""

MAX_DEPTH = 12
"""How deep in a document values are changed."""

MAX_LINE = 20_000
"""Characters of a message; a value that is too long to read is cut."""


def nested(depth: int, kind: type = list) -> Any:
    """Return something that lies as deep as asked in itself."""
    value: Any = 0
    for _ in range(depth):
        value = [value] if kind is list else {"a": value}
    return value


def containing_itself() -> dict[str, Any]:
    """Return an object that no JSON file can hold."""
    value: dict[str, Any] = {}
    value["self"] = value
    return value


NASTY: dict[str, Callable[[], Any]] = {
    **{
        repr(value): lambda value=value: value
        for value in (
            0, -1, 1, 2, 7, 1.5, -0.0, 1e-320, 5e-324, 1e38, 3.5e38, 1e300, 1.8e308, -1e300,
            math.nan, math.inf, -math.inf, True, False, None, "", " ", "a", "1", "nan", "\x1b[31m",
            "\u202e", "\ud800", "line\nline", "../..", "0.5", "null", 2**31, 2**31 - 1, 2**53 + 1,
            2**62, 2**63 - 1, 2**63, 2**64, -(2**63), 10**6, 10**9, 10**12, 10**15, 10**18,
        )
    },
    "10**30": lambda: 10**30,
    "10**40": lambda: 10**40,
    "-10**40": lambda: -(10**40),
    "10**400": lambda: 10**400,
    "10**5000": lambda: 10**5000,
    "a long text": lambda: "x" * 100_000,
    "[]": list,
    "{}": dict,
    "[[]]": lambda: [[]],
    "[None]": lambda: [None],
    "[1, 'a']": lambda: [1, "a"],
    "[nan]": lambda: [math.nan],
    "[10**400]": lambda: [10**400],
    "{'a': nan}": lambda: {"a": math.nan},
    "{'': 1}": lambda: {"": 1},
    "{1: 2}": lambda: {1: 2},
    "{None: 2}": lambda: {None: 2},
    "a ramp": lambda: {"start": 1.0, "end": 10**40, "hold_episodes": 0, "ramp_episodes": 10**40},
    "a mixture": lambda: {"values": [1, "a"], "weights": [10**40, 10**400]},
    "a task": lambda: {"name": "a", "label": "a", "params": {}, "seed": 0},
    "deep list": lambda: nested(2_000),
    "deep object": lambda: nested(2_000, dict),
    "itself": containing_itself,
    "many": lambda: [0] * 1_000,
    "an object": object,
    "bytes": lambda: b"a",
    "complex": lambda: 1j,
    "a set": lambda: {1},
}  # fmt: skip
"""Values that no field expects, or few."""

STAGED = StagedConfig(
    stages=tuple(Stage(name=label, threshold=0.5, min_episodes=5) for label in LABELS),
    early=EarlyRule(), trend=TrendRule(), demotion=DemotionRule(), mixing=Mixing(),
)  # fmt: skip
PHASED = PhasedConfig(
    phases=(
        Phase(name="one", mixture={"a": 1.0, "b": 2.0}, episodes=10, success=0.5, steps=100),
        Phase(
            name="two",
            curriculum=STAGED,
            episodes=5,
            settings={
                "x.y": Mixed((1, 2), (0.5, 0.5)),
                "z": Ramp(start=0.0, end=1.0, ramp_episodes=9),
            },
        ),
        Phase(name="three"),
    )
)
GIVEN: tuple[CurriculumConfig, ...] = (STAGED, PHASED, MixtureConfig(weights={"a": 1.0, "b": 0.5}))
"""Configs of curricula that have no defaults, and one of everything in them."""


@dataclass(frozen=True)
class Target:
    """Something that is read from JSON."""

    name: str
    document: Any
    read: Callable[[Any], Any]
    write: Callable[[Any], Any]
    build: Callable[[Any], None]


def _nothing(config: Any) -> None:
    """Build nothing."""


def _build_curriculum(config: CurriculumConfig) -> None:
    curriculum = config.make(TASKS, seed=1)
    curriculum.draw(4)
    curriculum.explain()


def _build_training(config: TrainingConfig) -> None:
    """Build what a training is made of, as far as it is made before its envs."""
    config.curriculum.make(config.task_source(), seed=config.seed)


def targets() -> list[Target]:
    """Return everything that is read."""
    found = [
        Target(f"preset {name}", preset.to_json(), load_config, TrainingConfig.to_json,
               _build_training)
        for name, preset in PRESETS.items()
    ]  # fmt: skip
    for path in sorted(EXAMPLES.glob("*.json")):
        document = json.loads(path.read_text())
        found.append(
            Target(f"example {path.name}", document, load_config, TrainingConfig.to_json, _nothing)
        )
    given = {config.kind for config in GIVEN}
    plain = [CURRICULA[name]() for name in CURRICULA if name not in given]
    for config in (*GIVEN, *plain):
        name = type(config).__name__
        found.append(
            Target(
                name,
                config.to_json(),
                CurriculumConfig.from_json,
                lambda one: one.to_json(),
                _build_curriculum,
            )
        )
        document = {
            "tasks": [task.to_json() for task in TASKS],
            "env": "CartPole-v1",
            "curriculum": config.to_json(),
        }
        found.append(
            Target(f"training with {name}", document, load_config, TrainingConfig.to_json, _nothing)
        )
    for kind in map(AGENTS.__getitem__, AGENTS):
        read, write = AgentConfig.from_json, AgentConfig.to_json
        found.append(Target(kind.kind, kind().to_json(), read, write, _nothing))
    return found


# Changing documents.


def places(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value in a document."""
    yield path
    if len(path) >= MAX_DEPTH:
        return
    entries = document.items() if isinstance(document, dict) else ()
    if isinstance(document, list):
        entries = enumerate(document)
    for key, value in entries:
        yield from places(value, (*path, key))


def copied(document: Any, depth: int = 0) -> Any:
    """Return a copy of a document as far down as anything in it is changed."""
    if depth <= MAX_DEPTH and isinstance(document, dict):
        return {key: copied(value, depth + 1) for key, value in document.items()}
    if depth <= MAX_DEPTH and isinstance(document, list):
        return [copied(value, depth + 1) for value in document]
    return document


def put(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    """Return a document with one value replaced."""
    if not path:
        return value
    changed = copied(document)
    inside = changed
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = value
    return changed


def get(document: Any, path: tuple[Any, ...]) -> Any:
    """Return the value at a path."""
    for key in path:
        document = document[key]
    return document


NEW_KEYS = ("", "config", "type", "name", "x", "exploration", 1, None)


def shuffled(document: Any, rng: random.Random) -> tuple[Any, str]:
    """Return a document with something removed, doubled, renamed, swapped or put elsewhere."""
    all_places = list(places(document))
    path, other = rng.choice(all_places), rng.choice(all_places)
    kind = rng.choice(("remove", "double", "rename", "swap", "move", "nasty"))
    value = get(document, path)
    if kind == "nasty" or not path:
        name = rng.choice(list(NASTY))
        return put(document, path, NASTY[name]()), f"{path} = {name}"
    if kind == "swap":
        changed = put(document, path, copied(get(document, other)))
        return changed, f"{path} = what is at {other}"
    changed = copied(document)
    inside = get(changed, path[:-1])
    if kind == "remove":
        del inside[path[-1]]
    elif kind == "double" and isinstance(inside, list):
        inside.append(copied(value))
    elif kind == "rename" and isinstance(inside, dict):
        inside[rng.choice(NEW_KEYS)] = value
    elif isinstance(inside, dict):
        inside[f"{path[-1]}x"] = inside.pop(path[-1])
    return changed, f"{kind} {path}"


# Judging what comes of it.


class Fault(AssertionError):
    """An outcome that is not allowed."""


def outcome(target: Target, document: Any) -> str:
    """Read a document; return "accepted" or "refused".

    Raises:
        Fault: Anything else came of it.
    """
    try:
        config = target.read(document)
    except StepladderError as error:
        _check_message(str(error))
        return "refused"
    except Exception as error:
        raise Fault(f"read raised {type(error).__name__}: {str(error)[:200]}") from error
    try:
        written = target.write(config)
        text = json.dumps(written, allow_nan=False)
        again = target.read(json.loads(text))
    except Exception as error:
        raise Fault(f"accepted, then raised {type(error).__name__}: {str(error)[:300]}") from error
    if again != config:
        raise Fault("accepted, then read back as something else")
    try:
        target.build(config)
    except StepladderError as error:
        _check_message(str(error))
        return "refused when built"
    except Exception as error:
        raise Fault(f"built with {type(error).__name__}: {str(error)[:300]}") from error
    return "accepted"


def _check_message(text: str) -> None:
    lines = text.splitlines()
    if not lines or not lines[0].strip():
        raise Fault("refused without a reason")
    if any(not line.startswith("  ") for line in lines[1:]):
        raise Fault(f"refused in several lines that are no list: {text[:300]!r}")
    if any(character in text for character in "\x1b\u202e\x00"):
        raise Fault(f"refused with control characters: {text[:300]!r}")
    if max(map(len, lines)) > MAX_LINE:
        raise Fault(f"refused with a line of {max(map(len, lines))} characters: {text[:300]!r}")


def run(seed: int, count: int | None = None, seconds: float | None = None) -> dict[str, int]:
    """Change documents at random; return how many there were of each outcome.

    Args:
        seed: Of all that is chosen.
        count: How many documents.
        seconds: Or for how long.

    Raises:
        Fault: One outcome was not allowed; the message says how to see it again.
    """
    rng, everything = random.Random(seed), targets()
    outcomes: dict[str, int] = {}
    end = math.inf if seconds is None else time.monotonic() + seconds
    number = 0
    while (count is None or number < count) and time.monotonic() < end:
        number += 1
        target = rng.choice(everything)
        document, steps = target.document, []
        for _ in range(rng.choice((1, 1, 1, 2, 3, 5))):
            document, step = shuffled(document, rng)
            steps.append(step)
        try:
            found = outcome(target, document)
        except Fault as fault:
            raise Fault(f"seed {seed}, number {number}, {target.name}: {steps}: {fault}") from fault
        outcomes[found] = outcomes.get(found, 0) + 1
    return outcomes


def every_field(target: Target, values: list[str]) -> Iterator[tuple[str, Any]]:
    """Yield a target's document with each value in each place, in turn, and how it was made."""
    for path in places(target.document):
        for name in values:
            yield f"{path} = {name}", put(target.document, path, NASTY[name]())


# Sweeps, whose spaces are texts.


def sweep_texts(rng: random.Random, count: int) -> Iterator[str]:
    """Yield texts that are nearly what a sweep varies."""
    names = [*SweepConfig().fields(), "nothing", "", "simulation.num_envs"]
    parts = [
        "1", "0", "-1", "0.5", "1e400", "-1e400", "nan", "inf", "1" * 400, "1" * 5000, "1e-320",
        "true", "None", "", "a", "\x1b[31m", "..", ":log", ":lin", ",", "=", " ",
    ]  # fmt: skip
    for _ in range(count):
        yield f"{rng.choice(names)}={''.join(rng.choices(parts, k=rng.randint(0, 4)))}"


def run_sweeps(seed: int, count: int) -> dict[str, int]:
    """Read texts of sweeps; return how many there were of each outcome."""
    rng = random.Random(seed)
    config = SweepConfig(num_envs=2)
    known = config.fields()
    outcomes: dict[str, int] = {}
    for text in sweep_texts(rng, count):
        for read in (parse_choice, parse_range):
            try:
                dimension = read(text, known)
                json.dumps(dimension.to_json(), allow_nan=False)
                values = getattr(dimension, "values", None) or (dimension.low, dimension.high)  # pyright: ignore
                for value in values:
                    config.setup({dimension.field: value})
                found = "accepted"
            except StepladderError as error:
                _check_message(str(error))
                found = "refused"
            except Exception as error:
                raise Fault(f"sweep {text[:100]!r}: {type(error).__name__}: {error}") from error
            outcomes[found] = outcomes.get(found, 0) + 1
    return outcomes


def _main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--every", action="store_true", help="all values in all places, once")
    arguments = parser.parse_args()
    # Whatever takes memory before it checks a size fails here, and not the machine.
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    if arguments.every:
        return _every()
    end, seed, total = time.monotonic() + arguments.seconds, arguments.seed, dict[str, int]()
    while time.monotonic() < end:
        for name, number in run(seed, count=500).items():
            total[name] = total.get(name, 0) + number
        run_sweeps(seed, 100)
        seed += 1
    sys.stdout.write(f"seeds {arguments.seed} to {seed - 1}: {total}\n")
    return 0


def _every() -> int:
    faults: dict[str, list[str]] = {}
    for target in targets():
        for how, document in every_field(target, list(NASTY)):
            try:
                outcome(target, document)
            except Fault as fault:
                faults.setdefault(str(fault)[:160], []).append(f"{target.name}: {how}")
    for text, cases in sorted(faults.items(), key=lambda one: -len(one[1])):
        sys.stdout.write(f"{len(cases):6} {text}\n         {cases[:4]}\n")
    return len(faults) > 0


if __name__ == "__main__":
    try:
        sys.exit(_main())
    except Fault:
        traceback.print_exc()
        sys.exit(1)
