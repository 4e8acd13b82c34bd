"""How small functions get into the kernels that call them: as numba does it, but once each.

Used by `compiled` alone. numba's own pass reads, rewrites and twice copies a function for every
call of it, and all that it calls in turn; in kernels made of a hundred small functions that takes
half of the time to compile. This pass reads each function once per kernel, and copies of it only
what is changed. The kernels are the same.
"""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false, reportUntypedBaseClass=false
# pyright: reportUnknownLambdaType=false, reportUntypedFunctionDecorator=false
# Reason for the lines above: numba ships no types.

import copy
from typing import Any

from numba.core import ir
from numba.core.bytecode import FunctionIdentity
from numba.core.compiler import Compiler, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.inline_closurecall import InlineWorker, callee_ir_validator
from numba.core.untyped_passes import InlineInlinables


class _OwnBlock(ir.Block):
    """A block that was copied for one call: its statements need not be copied again.

    numba does so twice, to change one copy and to return the other, which is not used.
    """

    def __deepcopy__(self, memo: Any) -> "_OwnBlock":
        block = _OwnBlock(self.scope, self.loc)
        block.body = list(self.body)
        return block


def _copy_of(known: Any, function: Any) -> Any:
    """Copy the code of a function for one call of it, with names that no other call has.

    Statements are changed by the code that inlines them. Variables and lines of source are not:
    they are replaced.
    """
    memo: dict[int, Any] = {}
    blocks: dict[int, Any] = {}
    for label, block in known.blocks.items():
        scope = block.scope
        if id(scope) not in memo:
            memo[id(scope)] = _copy_of_scope(scope, memo)
        own = _OwnBlock(memo[id(scope)], block.loc)
        for statement in block.body:
            memo[id(statement.loc)] = statement.loc
            value = getattr(statement, "value", None)
            if isinstance(value, ir.Expr):
                memo[id(value.loc)] = value.loc
        own.body = [copy.deepcopy(statement, memo) for statement in block.body]
        blocks[label] = own
    copied = known.copy()
    copied.blocks = blocks
    copied.func_id = FunctionIdentity.from_function(function)
    return copied


def _copy_of_scope(scope: Any, memo: dict[int, Any]) -> Any:
    """Copy a scope, to which names are added; its variables stay those that they are."""
    copied = copy.copy(scope)
    copied.localvars = copy.copy(scope.localvars)
    copied.localvars._con = dict(scope.localvars._con)
    copied.redefined = scope.redefined.copy()
    copied.var_redefinitions = copy.deepcopy(scope.var_redefinitions)
    for variable in scope.localvars._con.values():
        memo[id(variable)] = variable
    return copied


class _Worker(InlineWorker):
    """Inlines functions that it knows."""

    def __init__(self, state: Any):
        super().__init__(
            state.typingctx,
            state.targetctx,
            state.locals,
            state.pipeline,
            state.flags,
            validator=callee_ir_validator,
        )
        self._compiler_pipeline = _untyped_pipeline
        self._known: dict[Any, Any] = state.pipeline.known

    def run_untyped_passes(self, func: Any, enable_ssa: bool = False) -> Any:
        """Return the code of a function, to be changed by the caller."""
        if func not in self._known:
            self._known[func] = super().run_untyped_passes(func, enable_ssa)
        return _copy_of(self._known[func], func)


@register_pass(mutates_CFG=True, analysis_only=False)
class _InlineKnown(InlineInlinables):
    """numba's pass, with the worker above."""

    _name = "stepladder_inline_known"

    def _do_work(
        self, state: Any, work_list: Any, block: Any, i: int, expr: Any, inline_worker: Any
    ) -> Any:
        if not isinstance(inline_worker, _Worker):
            inline_worker = _Worker(state)
        return super()._do_work(state, work_list, block, i, expr, inline_worker)


def _with_own_pass(manager: Any) -> Any:
    """Put the pass above in the place of numba's."""
    manager.add_pass_after(_InlineKnown, InlineInlinables)
    manager.passes = [each for each in manager.passes if each[0] is not InlineInlinables]
    manager.finalize()
    return manager


def _untyped_pipeline(state: Any) -> Any:
    return _with_own_pass(DefaultPassBuilder.define_untyped_pipeline(state))


class InliningCompiler(Compiler):
    """numba's compiler, with the pass above."""

    def __init__(self, *arguments: Any, **settings: Any):
        super().__init__(*arguments, **settings)
        self.known: dict[Any, Any] = {}

    def define_pipelines(self) -> list[Any]:
        """Return the steps from Python to machine code."""
        return [_with_own_pass(manager) for manager in super().define_pipelines()]
