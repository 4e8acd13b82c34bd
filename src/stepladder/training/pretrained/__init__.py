"""Trained policies of the built-in games that come with the package.

Each is a file of weights, as `TrainedPolicy.save` writes it, and a JSON document beside it that
says how it was trained and how well it plays; ``tools/pretrain.py`` makes both. `watch` and `eval`
find them here by name, `stepladder.load_policy` reads the weights.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepladder.configs.problems import nearest
from stepladder.errors import ConfigError, SnapshotError, shown
from stepladder.files import parsed_json, read_bytes
from stepladder.training.config import TrainingConfig

PRETRAINED_FORMAT = 1
"""Of the documents; another number is not read."""

KEYS = {"sha256", "step", "config", "evaluation"}
"""What every document has beside its format."""

PRETRAINED_FOLDER = Path(__file__).parent


@dataclass(frozen=True, kw_only=True)
class Pretrained:
    """A policy that comes with the package."""

    name: str
    path: Path
    """The file of its weights."""

    step: int
    """Env steps of its training."""

    config: TrainingConfig
    """How it was trained."""

    evaluation: Mapping[str, Any]
    """How well it played when it was made, as ``stepladder eval --json`` writes it."""


def pretrained_names(folder: Path = PRETRAINED_FOLDER) -> list[str]:
    """Return the names of all policies that come with the package."""
    return sorted(path.stem for path in folder.glob("*.json"))


def find_pretrained(name: str, folder: Path = PRETRAINED_FOLDER) -> Pretrained:
    """Return a policy that comes with the package.

    Args:
        name: One of `pretrained_names`.
        folder: Where they lie.

    Raises:
        ConfigError: There is none of this name.
        SnapshotError: Its files are damaged, or of another version of the package.
    """
    names = pretrained_names(folder)
    if name not in names:
        raise ConfigError(
            f"there is no pre-trained policy {shown(name)}; there are {', '.join(names)}."
            f"{nearest(name, names)}"
        )
    path = folder / f"{name}.safetensors"
    about = _document(name, folder / f"{name}.json")
    try:
        found = hashlib.sha256(read_bytes(path, follow=True)).hexdigest()
        config = TrainingConfig.from_json(about["config"], "its config")
    except (OSError, ConfigError) as error:
        raise _broken(name, str(error)) from error
    if found != about["sha256"]:
        raise _broken(name, "its weights are not those that its document is about")
    step, evaluation = about["step"], about["evaluation"]
    return Pretrained(name=name, path=path, step=step, config=config, evaluation=evaluation)


def _document(name: str, path: Path) -> dict[str, Any]:
    try:
        about = parsed_json(read_bytes(path, follow=True))
    except (OSError, ValueError) as error:
        raise _broken(name, str(error)) from error
    if not isinstance(about, dict) or about.get("format") != PRETRAINED_FORMAT:
        raise _broken(name, f"{path.name} is not of the format {PRETRAINED_FORMAT}")
    missing = KEYS - about.keys()
    if missing:
        raise _broken(name, f"{path.name} lacks {', '.join(sorted(missing))}")
    return about


def _broken(name: str, reason: str) -> SnapshotError:
    return SnapshotError(
        f"the pre-trained policy {name} of this installation cannot be used: {reason}. Install "
        "the package again."
    )
