"""Curricula inside curricula: a phase may have one of its own, with phases again.

For whoever looks at a curriculum from outside, such as `meter` and `events`.
"""

from collections.abc import Iterator

from stepladder.curricula.base import Curriculum
from stepladder.curricula.phased.phased import Phased


def in_force(curriculum: Curriculum) -> Curriculum:
    """Return the method that makes the weights now: the one of the current phase, if any."""
    while isinstance(curriculum, Phased):
        curriculum = curriculum.inner[curriculum.phase_index]
    return curriculum


def all_methods(curriculum: Curriculum, path: str = "") -> Iterator[tuple[str, Curriculum]]:
    """Yield a curriculum and all inside it, each with the phases that lead there.

    The path of the outermost is empty; that of a phase ``b`` inside a phase ``a`` is ``a/b``.
    """
    yield path, curriculum
    if isinstance(curriculum, Phased):
        for phase, inner in zip(curriculum.config.phases, curriculum.inner, strict=True):
            yield from all_methods(inner, f"{path}/{phase.name}" if path else phase.name)
