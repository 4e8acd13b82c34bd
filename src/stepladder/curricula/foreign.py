"""What is left of a curriculum in a process that does not own it: a refusal.

`owner` counts forks with `forks`, and pickles a curriculum as a `ForeignCurriculum`. Both ways of
copying a curriculum into a worker thus end in an error that says what to do, instead of in a copy
that decides for nobody.
"""

import os
from typing import Any

from stepladder.errors import WrongProcessError

forks = [0]
"""How many forks lie between the first process and this one; read it as ``forks[0]``."""

os.register_at_fork(after_in_child=lambda: forks.__setitem__(0, forks[0] + 1))

REFUSAL = (
    "this is a copy of a curriculum in a process that does not own it; what it decided here would "
    "reach nobody. Pass enable_local_tracking=False to CurriculumEnv and wrap the vector env, or "
    "give the env a client. To continue a curriculum elsewhere, restore its snapshot there."
)


class ForeignCurriculum:
    """What arrives when a curriculum is sent to another process: a marker that refuses to work."""

    is_foreign = True

    def __init__(self, kind: str):
        self.kind = kind

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise WrongProcessError(REFUSAL)
