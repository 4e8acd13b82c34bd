"""How hot code is compiled, and the memory-ordering operations that shared memory needs.

Beside `errors` at the bottom of the house: `stats`, `curricula` and `sync` compile their kernels
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
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from llvmlite import ir
from llvmlite.binding import ffi
from numba.core import cgutils, types
from numba.core.compiler_lock import global_compiler_lock
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from stepladder.forking import hold_during_forks
from stepladder.source_stamp import source_stamp

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
}

Function = TypeVar("Function", bound=Callable[..., Any])


# In the order in which a thread that compiles takes them. The locks themselves, not the wrappers
# around them: these wait without a limit.
hold_during_forks(global_compiler_lock._lock)
hold_during_forks(ffi.lib._lock._lock)


def compiled(function: Function) -> Function:
    """Compile a function with the settings every kernel shares; the result is cached on disk."""
    return _compile(function)


def bare(function: Function) -> Function:
    """Compile a kernel that makes no arrays and keeps none, without counting who refers to them.

    For steps of many envs by several threads. Every view of an array is counted twice, in a place
    that all threads share; with short steps that takes longer than the steps. Such a kernel copies
    arrays element by element: assigning one to another may need memory of its own.
    """
    # An error that is raised needs memory of its own.
    return _compile(function, _nrt=CHECKS_BOUNDS)


def inlined(function: Function) -> Function:
    """Compile a small function into whatever calls it.

    For the innermost steps of kernels that run millions of times a second: a call that hands over
    an array takes longer than most of them.
    """
    return _compile(function, inline="always")


def _compile(function: Function, **settings: Any) -> Function:
    """Compile a function; its cached code is valid as long as nothing it imports changes.

    numba has no public way to extend what a cached kernel depends on. Where its private attributes
    are missing (another version) or the source is not in a file (a notebook), the kernel works but
    is not cached.
    """
    settings = {**_SETTINGS, **settings}
    dispatcher: Any = numba.njit(**settings)(function)
    if settings["cache"]:
        try:
            file = dispatcher._cache._cache_file
            stamp = source_stamp(Path(function.__code__.co_filename))
            file._source_stamp = (file._source_stamp, stamp)
        except (AttributeError, OSError):
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
    types_of_examples = tuple(numba.typeof(example) for example in examples)
    dispatcher.compile(types_of_examples)
    return cast("Function", dispatcher.overloads[types_of_examples].entry_point)


def _element(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    array_type = signature.args[0]
    array = make_array(array_type)(context, builder, args[0])
    return cgutils.get_item_pointer(
        context, builder, array_type, array, [args[1]], wraparound=False
    )


@intrinsic
def _load_acquire(typing_context: Any, words: Any, index: Any) -> Any:
    """Emit `load_acquire`."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load_atomic(_element(context, builder, signature, args), "acquire", 8)

    return types.int64(words, index), codegen


@intrinsic
def _store_release(typing_context: Any, words: Any, index: Any, value: Any) -> Any:
    """Emit `store_release`."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _element(context, builder, signature, args)
        builder.store_atomic(args[2], pointer, "release", 8)
        return context.get_dummy_value()

    return types.void(words, index, types.int64), codegen


@intrinsic
def _fetch_add(typing_context: Any, words: Any, index: Any, value: Any) -> Any:
    """Emit `fetch_add`."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _element(context, builder, signature, args)
        return builder.atomic_rmw("add", pointer, args[2], "seq_cst")

    return types.int64(words, index, types.int64), codegen


@intrinsic
def _swap_if(typing_context: Any, words: Any, index: Any, expected: Any, value: Any) -> Any:
    """Emit `swap_if`."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _element(context, builder, signature, args)
        result = builder.cmpxchg(pointer, args[2], args[3], "seq_cst", "seq_cst")
        return builder.extract_value(result, 1)

    return types.boolean(words, index, types.int64, types.int64), codegen


@intrinsic
def _fence_after_reads(typing_context: Any) -> Any:
    """Emit `fence_after_reads`."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.fence("acquire")
        return context.get_dummy_value()

    return types.void(), codegen


@intrinsic
def _fence_before_writes(typing_context: Any) -> Any:
    """Emit `fence_before_writes`."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.fence("release")
        return context.get_dummy_value()

    return types.void(), codegen


@intrinsic
def _fence_all(typing_context: Any) -> Any:
    """Emit `fence_all`."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), codegen


@intrinsic
def _pause(typing_context: Any) -> Any:
    """Emit `pause`."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = ir.IntType(32)
        if platform.machine() in ("x86_64", "AMD64"):
            kind, name, values = ir.FunctionType(ir.VoidType(), []), "llvm.x86.sse2.pause", []
        elif platform.machine() in ("aarch64", "arm64"):
            # Hint number 1 is YIELD.
            kind, name = ir.FunctionType(ir.VoidType(), [word]), "llvm.aarch64.hint"
            values = [ir.Constant(word, 1)]
        else:
            return context.get_dummy_value()
        builder.call(cgutils.get_or_insert_function(builder.module, kind, name), values)
        return context.get_dummy_value()

    return types.void(), codegen


@intrinsic
def _yield_core(typing_context: Any) -> Any:
    """Emit `yield_core`."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(ir.IntType(32), [])
        builder.call(cgutils.get_or_insert_function(builder.module, kind, "sched_yield"), [])
        return context.get_dummy_value()

    return types.void(), codegen


@intrinsic
def _current_cpu(typing_context: Any) -> Any:
    """Emit `current_cpu`."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if sys.platform != "linux":
            return ir.Constant(ir.IntType(64), UNKNOWN_CPU)
        kind = ir.FunctionType(ir.IntType(32), [])
        found = cgutils.get_or_insert_function(builder.module, kind, "sched_getcpu")
        return builder.sext(builder.call(found, []), ir.IntType(64))

    return types.int64(), codegen


load_acquire = cast("Callable[[Any, int], int]", _load_acquire)
"""Read ``words[index]``; what follows in the program is not read before it."""

store_release = cast("Callable[[Any, int, int], None]", _store_release)
"""Write ``words[index] = value``; what precedes in the program is visible before it."""

fetch_add = cast("Callable[[Any, int, int], int]", _fetch_add)
"""Add to ``words[index]`` in one step that no other thread can divide; return the old value."""

swap_if = cast("Callable[[Any, int, int, int], bool]", _swap_if)
"""Set ``words[index]`` if it still has the expected value, in one step; return whether it had."""

fence_after_reads = cast("Callable[[], None]", _fence_after_reads)
"""No read before this line happens after a read or write behind it."""

fence_before_writes = cast("Callable[[], None]", _fence_before_writes)
"""No write behind this line becomes visible before what precedes it."""

fence_all = cast("Callable[[], None]", _fence_all)
"""Nothing crosses this line: what precedes is visible to all before anything behind is read."""

current_cpu = cast("Callable[[], int]", _current_cpu)
"""Return the number of the core this runs on; `UNKNOWN_CPU` where the system does not tell."""

yield_core = cast("Callable[[], None]", _yield_core)
"""Let another thread that waits for this core run first."""

pause = cast("Callable[[], None]", _pause)
"""Tell the processor that this is a waiting loop, so that it leaves its neighbour the core."""
