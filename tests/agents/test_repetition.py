"""The precision of products, which an update on a GPU is recorded with."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from stepladder.agents.config import Precision
from stepladder.agents.replay.repetition import products

BACKENDS: tuple[Any, Any] = (torch.backends.cuda.matmul, torch.backends.cudnn)
"""Of matrices and of convolutions."""


def allowed() -> list[bool]:
    """Return what torch may round, of matrices and of convolutions."""
    return [one.allow_tf32 for one in BACKENDS]


@pytest.fixture(params=[[True, False], [False, True]])
def others(request: pytest.FixtureRequest) -> Iterator[list[bool]]:
    """Set what others may have chosen; put back what there was."""
    before = allowed()
    for given in (request.param, before):
        for one, value in zip(BACKENDS, given, strict=True):
            one.allow_tf32 = value
        if given is not before:
            yield given


@pytest.mark.parametrize("precision", ["float32", "tf32"])
def test_a_precision_holds_for_all_products_and_is_put_back(
    precision: Precision, others: list[bool]
):
    with products(precision):
        inside = allowed()
    assert inside == [precision == "tf32"] * 2
    assert allowed() == others


def test_a_precision_is_put_back_after_an_error(others: list[bool]):
    with pytest.raises(ZeroDivisionError), products("tf32"):
        raise ZeroDivisionError
    assert allowed() == others
