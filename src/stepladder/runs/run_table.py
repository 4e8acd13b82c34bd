"""A table of a run: columns of NumPy by name, as pandas on request, as HTML in a notebook.

`run` makes them from what `reader` returns. Pandas is imported when it is asked for.
"""

import html
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from stepladder.errors import ConfigError
from stepladder.visible import one_visible_line

if TYPE_CHECKING:
    from pandas import DataFrame

MOST_ROWS, MOST_COLUMNS, MOST_LETTERS = 20, 12, 120
"""Most that a notebook shows of a table."""


class RunTable(Mapping[str, npt.NDArray[Any]]):
    """Equally long columns: arrays of numbers, or of texts and other objects.

    A mapping, so that ``table["step"]`` is an array and ``dict(table)`` all of them.

    Args:
        columns: The columns by name.
    """

    def __init__(self, columns: Mapping[str, npt.NDArray[Any]]):
        self._columns = dict(columns)

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __repr__(self) -> str:
        names = [*list(self)[:MOST_COLUMNS], *(["..."] if len(self) > MOST_COLUMNS else [])]
        return f"{type(self).__name__}({self.num_rows:,} rows: {', '.join(names)})"

    @property
    def num_rows(self) -> int:
        """How long the columns are."""
        return max(map(len, self._columns.values()), default=0)

    def to_pandas(self) -> "DataFrame":
        """Return the same as a data frame.

        Raises:
            ConfigError: Pandas is not installed.
        """
        try:
            pandas = import_module("pandas")
        except ImportError as error:
            raise ConfigError(
                f"a data frame needs the package pandas, which cannot be imported ({error}). "
                "Install it with: pip install 'stepladder[notebook]'"
            ) from error
        return pandas.DataFrame(self._columns)

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the first rows and columns, all text escaped."""
        names = list(self)[:MOST_COLUMNS]
        rows = min(self.num_rows, MOST_ROWS)
        head = "".join(f"<th>{escaped(name)}</th>" for name in names)
        body = "".join(
            f"<tr>{''.join(f'<td>{_cell(self[name][row])}</td>' for name in names)}</tr>"
            for row in range(rows)
        )
        left_out = [
            f"{count:,} more {what}"
            for count, what in ((self.num_rows - rows, "rows"), (len(self) - len(names), "columns"))
            if count
        ]
        note = f"<p>{', '.join(left_out)}</p>" if left_out else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{note}"


def escaped(text: object) -> str:
    """Return a text from outside as HTML that shows it, on one line, the end of a long one cut."""
    line = one_visible_line(text)
    cut = (
        line if len(line) <= MOST_LETTERS else f"{line[: MOST_LETTERS - 1]}\N{HORIZONTAL ELLIPSIS}"
    )
    return html.escape(cut)


def objects(values: list[Any]) -> npt.NDArray[Any]:
    """Return an array of objects, one for each value, whatever they are."""
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def _cell(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return "" if np.isnan(value) else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int | np.integer) else escaped(value)
