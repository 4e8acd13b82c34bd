"""What can be practised: tasks, the sources they come from, and the pool of active ones.

First station of an episode. A source makes tasks by id; the pool keeps some of them in slots;
everything further on (`curricula`, `sync`, `envs`) uses slots and generations.
"""

from stepladder.tasks.editing import EditableSource, EditedSource
from stepladder.tasks.folder import FolderSource
from stepladder.tasks.parameters import ParameterSource
from stepladder.tasks.pool import Pool
from stepladder.tasks.ranges import Choice, FloatRange, IntRange
from stepladder.tasks.source import ListSource, NumberedSource, Source
from stepladder.tasks.task import Task
from stepladder.tasks.union import UnionSource

__all__ = [
    "Choice",
    "EditableSource",
    "EditedSource",
    "FloatRange",
    "FolderSource",
    "IntRange",
    "ListSource",
    "NumberedSource",
    "ParameterSource",
    "Pool",
    "Source",
    "Task",
    "UnionSource",
]
