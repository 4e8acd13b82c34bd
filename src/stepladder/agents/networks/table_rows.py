"""Sums of rows of a table that codes name: the product of one-hot codes with weights, unmade.

Called by `coded`. A patch of 99 tiles of 8 kinds is 792 columns of which 99 are 1: adding 99 rows
of the weights takes a fraction of the time of multiplying by all of them. One column of codes after
the other for a block of rows, so that both stay in the nearest cache; eight columns at once.
"""
# pyright: reportMissingTypeStubs=false
# Reason: numba and llvmlite ship no types.

from typing import Any, cast

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from stepladder.arrays import Floats32, Words
from stepladder.compiled import CHECKS_BOUNDS, bare

Codes = npt.NDArray[np.uint8]

WIDTH = 16
"""Floats that are added at once: as many as fit into the widest register of x86."""

ROWS = 32
"""Rows of a block."""

_WIDE = ir.VectorType(ir.FloatType(), WIDTH)


def _at(context: Any, builder: Any, array: Any, value: Any, row: Any, column: Any) -> Any:
    """Write the code that finds `WIDTH` elements of an array."""
    made = make_array(array)(context, builder, value)
    pointer = cgutils.get_item_pointer(
        context, builder, array, made, [row, column], wraparound=False
    )
    return builder.bitcast(pointer, _WIDE.as_pointer())


def _load(builder: Any, pointer: Any) -> Any:
    return builder.load(pointer, align=4)


@intrinsic
def _add_eight(
    typing_context: Any, out: Any, row: Any, table: Any, places: Any, column: Any
) -> Any:
    """Add eight rows of a table to a row, from a column on."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        at = _at(context, builder, out, args[0], args[1], args[4])
        parts = [
            _load(builder, _at(context, builder, table, args[2], place, args[4]))
            for place in cgutils.unpack_tuple(builder, args[3], 8)
        ]
        while len(parts) > 1:
            parts = [builder.fadd(*parts[index : index + 2]) for index in range(0, len(parts), 2)]
        builder.store(builder.fadd(_load(builder, at), parts[0]), at, align=4)
        return context.get_dummy_value()

    return types.void(out, types.intp, table, types.UniTuple(types.intp, 8), types.intp), codegen


@intrinsic
def _add_to_eight(
    typing_context: Any, table: Any, places: Any, given: Any, row: Any, column: Any
) -> Any:
    """Add a row to eight different rows of a table, from a column on."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        value = _load(builder, _at(context, builder, given, args[2], args[3], args[4]))
        for place in cgutils.unpack_tuple(builder, args[1], 8):
            at = _at(context, builder, table, args[0], place, args[4])
            builder.store(builder.fadd(_load(builder, at), value), at, align=4)
        return context.get_dummy_value()

    return types.void(table, types.UniTuple(types.intp, 8), given, types.intp, types.intp), codegen


add_eight, add_to_eight = cast("Any", _add_eight), cast("Any", _add_to_eight)

WIDE_COLUMNS = 0 if CHECKS_BOUNDS else WIDTH
"""Columns that are added at once; with checks of every index, each by itself."""


@bare
def add_rows(codes: Codes, offsets: Words, table: Floats32, out: Floats32) -> None:
    """Add to each row of `out` the rows of a table that its codes name.

    Args:
        codes: Of shape ``(rows, columns)``.
        offsets: Row of the table that code 0 names, by column; no two columns share a row.
        table: Of shape ``(…, width)``.
        out: Of shape ``(rows, width)``. Changed in place.
    """
    num_rows, num_columns = codes.shape
    width = table.shape[1]
    wide = width - width % WIDTH if WIDE_COLUMNS > 0 else 0
    together = num_columns - num_columns % 8 if wide > 0 else 0
    for start in range(0, num_rows, ROWS):
        end = min(start + ROWS, num_rows)
        for first in range(0, together, 8):
            for row in range(start, end):
                places = (
                    offsets[first] + codes[row, first],
                    offsets[first + 1] + codes[row, first + 1],
                    offsets[first + 2] + codes[row, first + 2],
                    offsets[first + 3] + codes[row, first + 3],
                    offsets[first + 4] + codes[row, first + 4],
                    offsets[first + 5] + codes[row, first + 5],
                    offsets[first + 6] + codes[row, first + 6],
                    offsets[first + 7] + codes[row, first + 7],
                )
                for column in range(0, wide, WIDTH):
                    add_eight(out, row, table, places, column)
                for column in range(wide, width):
                    total = np.float32(0.0)
                    for place in places:
                        total += table[place, column]
                    out[row, column] += total
        for code_column in range(together, num_columns):
            for row in range(start, end):
                place = offsets[code_column] + codes[row, code_column]
                for column in range(width):
                    out[row, column] += table[place, column]


@bare
def add_to_rows(codes: Codes, offsets: Words, given: Floats32, table: Floats32) -> None:
    """Add each row of `given` to the rows of a table that its codes name.

    Args:
        codes: Of shape ``(rows, columns)``.
        offsets: As for `add_rows`.
        given: Of shape ``(rows, width)``.
        table: Of shape ``(…, width)``. Changed in place.
    """
    num_rows, num_columns = codes.shape
    width = table.shape[1]
    wide = width - width % WIDTH if WIDE_COLUMNS > 0 else 0
    together = num_columns - num_columns % 8 if wide > 0 else 0
    for start in range(0, num_rows, ROWS):
        end = min(start + ROWS, num_rows)
        for first in range(0, together, 8):
            for row in range(start, end):
                places = (
                    offsets[first] + codes[row, first],
                    offsets[first + 1] + codes[row, first + 1],
                    offsets[first + 2] + codes[row, first + 2],
                    offsets[first + 3] + codes[row, first + 3],
                    offsets[first + 4] + codes[row, first + 4],
                    offsets[first + 5] + codes[row, first + 5],
                    offsets[first + 6] + codes[row, first + 6],
                    offsets[first + 7] + codes[row, first + 7],
                )
                for column in range(0, wide, WIDTH):
                    add_to_eight(table, places, given, row, column)
                for column in range(wide, width):
                    for place in places:
                        table[place, column] += given[row, column]
        for code_column in range(together, num_columns):
            for row in range(start, end):
                place = offsets[code_column] + codes[row, code_column]
                for column in range(width):
                    table[place, column] += given[row, column]
