"""How hot code is compiled, and the memory-ordering operations that shared memory needs.

Beside `errors` at the bottom of the package: `stats`, `curricula` and `sync` compile their kernels
through `compiled`. Importing this module loads numba, so `import stepladder` does not import it.

NumPy and numba know only plain loads and stores, which a compiler may merge or reorder and a
processor may make visible in another order. A plan that another process reads while it is being
written needs more: an acquiring load, a releasing store and a fence for each side suffice for a
sequence lock and for a single-producer ring. On x86 they cost nothing but the compiler's freedom.
"""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false, reportMissingParameterType=false
# pyright: reportUntypedFunctionDecorator=false, reportPrivateImportUsage=false
# pyright: reportUnusedFunction=false
# Reason for the lines above: numba ships no types, and this module is the one place that meets it.

import os
import platform
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar, cast

import numba
import numpy as np
from llvmlite import ir
from llvmlite.binding import ffi
from numba.core import cgutils, types
from numba.core.compiler_lock import global_compiler_lock
from numba.extending import intrinsic
from numba.np import linalg
from numba.np.arrayobj import make_array

from stepladder.forking import hold_during_forks
from stepladder.source_stamp import source_stamp

try:
    from stepladder.inlining import InliningCompiler as Compiler
except ImportError:  # a numba whose inner parts lie elsewhere: its own compiler takes longer
    from numba.core.compiler import Compiler

UNKNOWN_CPU = -1

CHECKS_BOUNDS = os.environ.get("STEPLADDER_CHECK_BOUNDS", "") not in ("", "0")
"""Whether kernels raise `IndexError` for an index outside its array, instead of reading there.

For tests (``make test-bounds``): it costs a multiple of the time. Code compiled this way must not
meet the other in one cache, so it is kept on disk only where ``NUMBA_CACHE_DIR`` says.
"""

_SETTINGS: dict[str, Any] = {
    "cache": not CHECKS_BOUNDS or "NUMBA_CACHE_DIR" in os.environ,
    "nogil": True,
    "error_model": "numpy",
    "boundscheck": CHECKS_BOUNDS,
    "pipeline_class": Compiler,
}

Function = TypeVar("Function", bound=Callable[..., Any])


# In the order in which a thread that compiles takes them. The locks themselves, not the wrappers
# around them: these wait without a limit.
hold_during_forks(global_compiler_lock._lock)
hold_during_forks(ffi.lib._lock._lock)


def _postpone_blas() -> None:
    """Let numba load SciPy's BLAS when a kernel multiplies matrices, and not with any kernel.

    It takes a fifth of the time in which a worker starts. numba only wants to know whether there is
    one; kernels that need it load it themselves.
    """

    def find_blas() -> None:
        if find_spec("scipy") is None:
            raise ImportError

    load_blas = linalg.ensure_blas
    linalg.ensure_blas = find_blas
    try:
        import numba.np.arraymath  # noqa: F401  # asks while it is imported
    finally:
        linalg.ensure_blas = load_blas


if hasattr(linalg, "ensure_blas"):
    _postpone_blas()


def compiled(function: Function) -> Function:
    """Compile a function with the settings every kernel shares; the result is cached on disk."""
    return _compile(function)


def bare(function: Function, *, made_of: FunctionType | None = None) -> Function:
    """Compile a kernel that makes no arrays and keeps none, without counting references to them.

    For steps of many envs by several threads. Every view of an array is counted twice, in a place
    that all threads share; with short steps that takes longer than the steps. Such a kernel copies
    arrays element by element: assigning one to another may need memory of its own.

    Args:
        function: The kernel.
        made_of: The plain function whose code it has, if that is in another file.
    """
    # An error that is raised needs memory of its own.
    return _compile(function, made_of, _nrt=CHECKS_BOUNDS)


def inlined(function: Function) -> Function:
    """Compile a small function into whatever calls it.

    For the innermost steps of kernels that run millions of times a second: a call that hands over
    an array takes longer than most of them.
    """
    return _compile(function, inline="always")


def _compile(function: Function, made_of: FunctionType | None = None, **settings: Any) -> Function:
    """Compile a function; its cached code is valid as long as nothing it imports changes.

    numba has no public way to extend what a cached kernel depends on. Where its private attributes
    are missing (another version) or the source is not in a file (a notebook), the kernel works but
    is not cached.
    """
    settings = {**_SETTINGS, **settings}
    try:
        dispatcher: Any = numba.njit(**settings)(function)
        if settings["cache"]:
            file = dispatcher._cache._cache_file
            stamp = source_stamp(Path(function.__code__.co_filename))
            if made_of is not None:
                stamp += source_stamp(Path(made_of.__code__.co_filename), made_of.__name__)
            # Part of the version, which numba compares before it unpickles the rest of an index:
            # that may name classes that have moved since.
            file._version = f"{file._version} {stamp.hex()}"
    except (AttributeError, OSError, RuntimeError):
        settings["cache"] = False
        dispatcher = numba.njit(**settings)(function)
    return cast("Function", dispatcher)


def direct(kernel: Function, *examples: Any) -> Function:
    """Return a kernel's machine code for arguments of the examples' types.

    For calls made once per episode: it skips the look at every argument's type, which takes longer
    than the work, and it converts where the kernel itself would compile again (a bool where a
    float was expected costs a second then). Arrays must have exactly the examples' types.
    """
    dispatcher: Any = kernel
    types_of_examples = tuple(_type_of(example) for example in examples)
    dispatcher.compile(types_of_examples)
    return cast("Function", dispatcher.overloads[types_of_examples].entry_point)


def _type_of(example: Any) -> Any:
    """Return the type of a value for numba; that of arrays is worked out once: it takes long."""
    if not isinstance(example, np.ndarray | tuple):
        return numba.typeof(example)
    key = _key_of(example)
    if key not in _ARRAY_TYPES:
        _ARRAY_TYPES[key] = numba.typeof(example)
    return _ARRAY_TYPES[key]


def _key_of(example: Any) -> Any:
    """Return what decides about numba's type of an array, a number or a tuple of these."""
    if isinstance(example, tuple):
        return type(example), *map(_key_of, example)
    if not isinstance(example, np.ndarray):
        return numba.typeof(example)
    flags = example.flags
    layout = (flags.c_contiguous, flags.f_contiguous, flags.writeable, flags.aligned)
    return example.dtype, example.ndim, layout


_ARRAY_TYPES: dict[Any, Any] = {}

Emit = Callable[..., Any]
"""Writes machine code: given a builder and, for a place in memory, a pointer and all arguments."""


def _pointer_to(context: Any, builder: Any, place: Any, name: Any, args: Any) -> Any:
    """Write the code that finds a field of a record or an element of an array."""
    if isinstance(place, types.Record):
        kind = context.get_data_type(place.typeof(name.literal_value))
        offset = place.offset(name.literal_value)
        return cgutils.get_record_member(builder, args[0], offset, kind)
    array = make_array(place)(context, builder, args[0])
    return cgutils.get_item_pointer(context, builder, place, array, [args[1]], wraparound=False)


def _at_place(result: Any, num_values: int, emit: Emit) -> Any:
    """Return an operation at one place in memory.

    Compiled code calls it with a record and the name of an integer field, or with an array and an
    index; then come so many integers.
    """

    def typed(place: Any, name: Any) -> Any:
        if isinstance(place, types.Record) and not isinstance(name, types.StringLiteral):
            return None  # numba asks again with the literal

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            made = emit(builder, _pointer_to(context, builder, place, name, args), args)
            return context.get_dummy_value() if result is types.void else made

        return result(place, name, *(types.int64,) * num_values), codegen

    # numba reads the number of arguments off a signature.
    typings: tuple[Callable[..., Any], ...] = (
        lambda typing_context, place, name: typed(place, name),
        lambda typing_context, place, name, value: typed(place, name),
        lambda typing_context, place, name, expected, value: typed(place, name),
    )
    return intrinsic(typings[num_values])


def _alone(result: Any, emit: Emit) -> Any:
    """Return an operation without arguments."""

    def typed(typing_context: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            made = emit(builder)
            return context.get_dummy_value() if result is types.void else made

        return result(), codegen

    return intrinsic(typed)


def _call(builder: Any, name: str, result: Any, *values: Any) -> Any:
    """Write a call of a C function or an LLVM intrinsic."""
    kind = ir.FunctionType(result, [value.type for value in values])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), values)


def _emit_pause(builder: Any) -> None:
    if platform.machine() in ("x86_64", "AMD64"):
        _call(builder, "llvm.x86.sse2.pause", ir.VoidType())
    elif platform.machine() in ("aarch64", "arm64"):
        # Hint number 1 is YIELD.
        _call(builder, "llvm.aarch64.hint", ir.VoidType(), ir.Constant(ir.IntType(32), 1))


def _emit_current_cpu(builder: Any) -> Any:
    if sys.platform != "linux":
        return ir.Constant(ir.IntType(64), UNKNOWN_CPU)
    return builder.sext(_call(builder, "sched_getcpu", ir.IntType(32)), ir.IntType(64))


@intrinsic
def _record_at(typing_context: Any, words: Any, index: Any, layout: Any) -> Any:
    """Emit `record_at`."""
    record = layout.dtype

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if CHECKS_BOUNDS:
            length = make_array(words)(context, builder, args[0]).nitems
            last = builder.add(args[1], ir.Constant(args[1].type, record.size // 8))
            is_outside = builder.or_(
                builder.icmp_signed("<", args[1], ir.Constant(args[1].type, 0)),
                builder.icmp_signed(">", last, length),
            )
            with builder.if_then(is_outside, likely=False):
                context.call_conv.return_user_exc(
                    builder, IndexError, ("a record lies outside its array",)
                )
        pointer = _pointer_to(context, builder, words, index, args)
        return builder.bitcast(pointer, ir.PointerType(ir.ArrayType(ir.IntType(8), record.size)))

    return record(words, types.intp, layout), codegen


record_at: Callable[[Any, int, Any], Any] = cast("Any", _record_at)
"""See the words from ``words[index]`` on as a record of a layout, which must be a global dtype."""

load_acquire: Callable[[Any, str | int], int] = _at_place(
    types.int64, 0, lambda builder, at, args: builder.load_atomic(at, "acquire", 8)
)
"""Read a field of a record; what follows in the program is not read before it.

The record is given with the name of an integer field, or an array with an index; likewise below.
"""

store_release: Callable[[Any, str | int, int], None] = _at_place(
    types.void, 1, lambda builder, at, args: builder.store_atomic(args[2], at, "release", 8)
)
"""Write a field; what precedes in the program is visible before it."""

fetch_add: Callable[[Any, str | int, int], int] = _at_place(
    types.int64, 1, lambda builder, at, args: builder.atomic_rmw("add", at, args[2], "seq_cst")
)
"""Add to a field in one step that no other thread can divide; return the old value."""

swap_if: Callable[[Any, str | int, int, int], bool] = _at_place(
    types.boolean,
    2,
    lambda builder, at, args: builder.extract_value(
        builder.cmpxchg(at, args[2], args[3], "seq_cst", "seq_cst"), 1
    ),
)
"""Set a field if it still has the expected value, in one step; return whether it had."""

fence_after_reads: Callable[[], None] = _alone(types.void, lambda builder: builder.fence("acquire"))
"""No read before this line happens after a read or write behind it."""

fence_before_writes: Callable[[], None] = _alone(
    types.void, lambda builder: builder.fence("release")
)
"""No write behind this line becomes visible before what precedes it."""

fence_all: Callable[[], None] = _alone(types.void, lambda builder: builder.fence("seq_cst"))
"""Nothing crosses this line: what precedes is visible to all before anything behind is read."""

current_cpu: Callable[[], int] = _alone(types.int64, _emit_current_cpu)
"""Return the number of the core this runs on; `UNKNOWN_CPU` where the system does not say."""

yield_core: Callable[[], None] = _alone(
    types.void, lambda builder: _call(builder, "sched_yield", ir.IntType(32))
)
"""Let another thread that waits for this core run first."""

pause: Callable[[], None] = _alone(types.void, _emit_pause)
"""A hint to the processor that this is a waiting loop: the other thread of the core gets more."""
