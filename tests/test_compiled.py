"""The switch for bounds checks: what kernels do with an index outside their array."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import numpy as np
from stepladder.compiled import CHECKS_BOUNDS, bare, compiled, inlined

@inlined
def element(array, index):
    return array[index]

@compiled
def read(array, index):
    return element(array, index)

@bare
def write(array, index):
    array[index] = 1.0

assert CHECKS_BOUNDS
for kernel in (read, write):
    kernel(np.zeros(3), 2)
    try:
        kernel(np.zeros(3), 3)
    except IndexError:
        print("refused")
"""


@pytest.mark.processes
@pytest.mark.timeout(100)
def test_with_the_switch_every_kind_of_kernel_checks_its_indices() -> None:
    # Without a folder for compiled code nothing of it is kept, as nothing may be.
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    child = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**environment, "STEPLADDER_CHECK_BOUNDS": "1"},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert child.stdout.split() == ["refused", "refused"], child.stderr
