"""The curricula that ``simulate`` offers, each a subcommand with its own flags.

Between the registry of curricula and tyro. The flags of a curriculum begin with its settings for
the scenario that is simulated, because some of them depend on what is known about the tasks.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Union

import tyro

from stepladder.configs.documents import load_document
from stepladder.curricula.config import CurriculumConfig, TaskKnowledge
from stepladder.curricula.registry import curriculum_variants

USUAL = "learning-progress"
"""The curriculum that is simulated unless another is named."""


@dataclass(frozen=True)
class Chosen:
    """A curriculum as it was chosen on the command line."""

    name: str
    config: CurriculumConfig


def curriculum_choice(tasks: TaskKnowledge) -> Any:
    """Return a type for tyro: a union of subcommands, one per curriculum and one for a file."""
    variants = curriculum_variants()
    # tyro takes the first subcommand if none is given.
    names = dict.fromkeys([USUAL, *variants])
    members = [
        _subcommand(name, variants[name].make(tasks), variants[name].about) for name in names
    ]
    file = tyro.conf.subcommand("from-file", prefix_name=False, constructor=_from_file)
    # Made at run time, which the operator | cannot do.
    return Union[(*members, Annotated[Chosen, file])]


def _subcommand(name: str, config: CurriculumConfig, about: str) -> Any:
    def choose(config: Any = config) -> Chosen:
        return Chosen(name, config)

    # Settings inside settings have dotted flags, such as --demotion.threshold.
    flags = Annotated[type(config), tyro.conf.arg(name="")]
    choose.__annotations__["config"] = tyro.conf.AvoidSubcommands[flags]
    described = tyro.conf.subcommand(name, prefix_name=False, description=about, constructor=choose)
    return Annotated[Chosen, described]


def _from_file(file: tyro.conf.Positional[Path]) -> Chosen:
    """Settings in a JSON file, as a run keeps them under "curriculum" in its config.json.

    Args:
        file: A file with an object such as {"type": "frontier", "probing": 0.1}. Phased, staged and
            mixed curricula can be given this way too.
    """
    return Chosen(file.stem, config_from_file(file))


def config_from_file(file: Path) -> CurriculumConfig:
    """Return the settings that a JSON file holds.

    Raises:
        ConfigError: The file cannot be read, or does not describe a curriculum.
    """
    return CurriculumConfig.from_json(load_document(file), str(file))
