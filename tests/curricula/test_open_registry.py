"""A curriculum is registered at run time, by a decorator; what cannot be one is refused.

What an installed package brings is tested in `tests/cli/test_third_party_package.py`.
"""

from collections.abc import Iterator

import pytest

from stepladder.curricula import CURRICULA, CurriculumConfig, UniformConfig, register_curriculum
from stepladder.curricula.registry import curriculum_variants
from stepladder.errors import ConfigError
from stepladder.simulator import compare
from worked_examples import WorkedExample


@pytest.fixture
def _clean_registry() -> Iterator[None]:
    """Forget what a test has registered."""
    before = dict(CURRICULA._entries)
    yield
    CURRICULA._entries.clear()
    CURRICULA._entries.update(before)


@pytest.mark.usefixtures("_clean_registry")
def test_a_decorated_class_is_known_in_this_process() -> None:
    scope: dict[str, object] = {
        "__name__": "notebook",
        "register_curriculum": register_curriculum,
    }
    (code,) = WorkedExample.read("curriculum").new_files.values()
    code = code.replace("@dataclass", "@register_curriculum\n@dataclass")
    exec(code, scope)
    assert CURRICULA["rarest"] is scope["RarestConfig"]
    assert "rarest" in curriculum_variants()
    cells = compare(["chain-3"], ["rarest"], num_seeds=1).cells
    assert [cell.curriculum for cell in cells] == ["oracle", "uniform", "rarest"]
    exec(code, scope)
    assert CURRICULA["rarest"] is scope["RarestConfig"]


def test_what_cannot_be_a_curriculum_is_refused() -> None:
    class Nameless(CurriculumConfig):
        pass

    class Taken(CurriculumConfig):
        kind = "frontier"

    with pytest.raises(ConfigError, match="has no name"):
        register_curriculum(Nameless)
    with pytest.raises(ConfigError, match="already have an entry 'frontier'"):
        register_curriculum(Taken)
    with pytest.raises(ConfigError, match="must be a class derived from CurriculumConfig"):
        CURRICULA.register("odd")(int)
    with pytest.raises(ConfigError, match=r"Taken.kind must be 'odd'.*got 'frontier'"):
        CURRICULA.register("odd")(Taken)


@pytest.mark.usefixtures("_clean_registry")
def test_two_curricula_cannot_offer_the_same_name() -> None:
    @register_curriculum
    class Mine(UniformConfig):
        kind = "mine"

        @classmethod
        def variants(cls):
            return UniformConfig.variants()

    with pytest.raises(ConfigError, match="two curricula offer settings named 'uniform'; Mine is"):
        curriculum_variants()
