"""The contract of every curriculum: draw, observe, explain, snapshot, restore.

A curriculum turns records into the weights of its plan, in the one process that owns it. `sync`
carries the plan to the envs and the records back; envs draw through clients. A copy of this object
in another process is unusable: every method that draws or observes raises `WrongProcessError`.

A method is a subclass with a config. It says how its slots are grouped (`_groupings`), which
numbers readers need in addition to the weights (`_dials`), how the plan looks at the start
(`_publish`), what a batch of records changes (`_update`), and why (`_explain`, `_reason`).

An interrupt (Ctrl-C) can come between any two lines. What it leaves unfinished is completed by
whatever is called next: a batch is observed, and passed to every listener, as a whole and once.
"""

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from stepladder.arrays import Floats, Words
from stepladder.compiled import direct
from stepladder.curricula.batch_rule import CompiledRule
from stepladder.curricula.config import CurriculumConfig, Tasks, resolve_config
from stepladder.curricula.intake import NO_RECORDS
from stepladder.curricula.reporting.explanation import Change, Explanation, TaskExplanation, crowd
from stepladder.curricula.turnover import Turnover
from stepladder.errors import BuildError, ConfigError
from stepladder.plans import kernels
from stepladder.plans.choosing import prob_of
from stepladder.plans.legend import Legend
from stepladder.plans.plan import aligned_words
from stepladder.plans.record import DRAW_DTYPE, Draw, DrawArray, as_draw
from stepladder.tasks import Task

if TYPE_CHECKING:
    from stepladder.curricula.staged.report import StageReport


class Curriculum(Turnover):
    """Turns records into a plan. Create it once, in the host process.

    Args:
        tasks: A source, a pool or a list of tasks.
        config: The settings, an instance of the class's `Config`; or give them as keywords.
        seed: Seed of all draws.
        capacity: Number of slots, for sources with more tasks than should be active. Some methods
            replace tasks then.
        **settings: Fields of the config.
    """

    Config = CurriculumConfig
    """The class of the settings. It makes its curriculum: ``Frontier.Config().make(tasks)``."""

    needs_success: bool = True
    """Whether records must say how successful an episode was."""

    num_evicted: int = 0
    """Tasks that made room for others so far."""

    phase_index: int = 0
    """Position of the current phase; 0 if the method has no phases."""

    rule: ClassVar[CompiledRule | None] = None
    """Kernels for the compiled simulator, if the method has any. Not inherited: a subclass may
    change what they do, and says so with a rule of its own."""

    initial_state: ClassVar[str] = ""
    """What `states` says of a task that has just come in."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "Config" not in vars(cls) or cls.Config is CurriculumConfig:
            return
        own = vars(cls.Config)
        known: Any = own.get("curriculum_class")
        # A class that is defined again, as in a notebook, replaces itself; no other does.
        is_its_method = own.get("method_module", cls.__module__) == cls.__module__
        if is_its_method and (known is None or known.__qualname__ == cls.__qualname__):
            cls.Config.curriculum_class = cls

    def __init__(
        self,
        tasks: Tasks,
        config: CurriculumConfig | None = None,
        *,
        seed: int = 0,
        capacity: int | None = None,
        **settings: Any,
    ):
        super().__init__(tasks, resolve_config(self.Config, config, settings), seed, capacity)
        self._draw_for_host = direct(kernels.draw_for_host, aligned_words(1), 0)
        self._set_up()

    # What a method provides, in addition to the hooks of `PlanOwner`.

    def _set_up(self) -> None:
        """Make what the method keeps; called at the end of the constructor."""

    @abstractmethod
    def _explain(self) -> Explanation:
        """Answer `explain()`."""

    @abstractmethod
    def _reason(self, slot: int) -> tuple[str, dict[str, float]]:
        """Say in a clause why a slot has its weight, and what was measured for it."""

    def legend(self) -> Legend:
        """Return what a client must know to read the plan; small, and it never changes."""
        return Legend(needs_success=self.needs_success)

    # What logs, metrics and training read; a method overrides what it has.

    def inner_curricula(self) -> Mapping[str, "Curriculum"]:
        """Return the curricula inside this one, by name; most methods have none."""
        return {}

    def in_force(self) -> "Curriculum":
        """Return the method that makes the weights now: this one, or one inside it."""
        return self

    def all_methods(self, path: str = "") -> Iterator[tuple[str, "Curriculum"]]:
        """Yield this curriculum and all inside it, each with the names that lead there.

        The path of the outermost is empty; that of ``b`` inside ``a`` is ``a/b``.
        """
        yield path, self
        for name, inner in self.inner_curricula().items():
            yield from inner.all_methods(f"{path}/{name}" if path else name)

    @property
    def current_phase(self) -> str | None:
        """Name of the current phase; None if the method has no phases."""
        return None

    def stage_report(self, stage: str | None = None) -> "StageReport | None":
        """Return where a stage stands, by default the current one; None if there are no stages."""
        return None

    @property
    def next_check(self) -> int:
        """Number of observed records at which a change of stage is considered next."""
        return self.num_observed + 1

    def changes(self) -> Sequence[Change]:
        """Return the decisions so far, oldest first; empty if the method keeps no history."""
        return ()

    def states(self) -> list[str]:
        """Return where every slot stands, in a word each; empty if the method has no states."""
        return []

    def state_metrics(self) -> dict[str, float]:
        """Return further metrics of the method, logged as ``env_curriculum_stats/NAME``."""
        return {}

    # Drawing.

    def draw(self, k: int = 1) -> list[Draw]:
        """Draw `k` tasks for the host's own use, with replacement; always returns `k` items.

        Envs draw through their clients. Changes one counter in place: draws never repeat.
        """
        return [Draw(*row) for row in self.draw_batch(k).tolist()]

    def draw_batch(self, k: int) -> DrawArray:
        """Draw `k` tasks as a structured array of dtype `DRAW_DTYPE`; faster than `draw`."""
        if k < 0:
            raise ConfigError(f"k must be 0 or more; got {k}. Ask for as many draws as you need.")
        if self._due is not None:
            self.finish()
        plan = self.plan
        draws = np.empty(k, dtype=DRAW_DTYPE)
        if not kernels.draw_many_for_host(plan.block, self._num_drawn, draws):
            raise BuildError(nothing_active())
        self._num_drawn += k
        return draws

    def draw_one(self) -> Draw:
        """Draw one task for the host's own use; the fastest way to draw a single one."""
        if self._due is not None:
            self.finish()
        number = self._num_drawn
        draw = as_draw(Draw, self._draw_for_host((self._plan or self.plan).block, number))
        if draw[0] < 0:
            raise BuildError(nothing_active())
        self._num_drawn = number + 1
        return draw

    def task(self, draw: Draw) -> Task:
        """Return the task that a draw just made stands for, with the settings of its episode."""
        task, legend = self.pool.source.get(draw.task_id), self.legend()
        if not legend.has_settings:
            return task
        dials, plan_seed = self.plan.dials, self.seed
        return task.with_params(
            legend.settings(dials, plan_seed, draw.env_index, draw.episode_index)
        )

    def probs(self) -> Floats:
        """Return the probability of every slot at the next draw; takes a pass over all slots."""
        return self.plan.probs()

    def scores(self) -> Floats:
        """Return the method's own opinion of every slot, as it was before it became a weight.

        A method without one of its own returns its probabilities. Takes a pass over all slots.
        """
        return self.probs()

    # For engines that run a curriculum inside a compiled loop.

    @classmethod
    def compiled_rule(cls) -> CompiledRule | None:
        """Return the kernels that a compiled loop may call for this class, if it has any."""
        return vars(cls).get("rule")

    def rule_in_force(self) -> CompiledRule | None:
        """Return the kernels that a compiled loop may call for this curriculum, if it has any."""
        return self.compiled_rule()

    def kernel_state(self) -> tuple[Any, ...]:
        """Return what the method's kernels take before the records: block, table, state, constants.

        Raises:
            ConfigError: The method has no such kernels.
        """
        raise ConfigError(
            f"{type(self).__name__} has no compiled form. Run it through Python: engine='direct'."
        )

    def replace_noted(self) -> None:
        """Replace the tasks that a kernel has noted; most methods note none."""
        self.finish()
        # What follows from records that the kernel has observed already.
        self._observe(NO_RECORDS)

    # Explaining.

    def explain(self, slot: int | None = None) -> Explanation | TaskExplanation:
        """Say what the curriculum is doing and why, or why one task is (not) being drawn."""
        plan = self.plan
        if slot is None:
            return self._explain()
        self._check_slot(slot)
        reason, numbers = self._reason(slot)
        if self.is_quarantined(slot):
            reason = "it is quarantined, because an env could not build it"
        return TaskExplanation(
            slot=slot,
            generation=int(self.pool.generations[slot]),
            name=self.task_name(slot),
            label=self.label_of(slot),
            prob=prob_of(plan.block, slot),
            reason=reason,
            numbers=numbers,
            origin=self.pool.source.origin(int(self.pool.task_ids[slot])),
        )

    def _top(self, slots: Words, *columns: Floats) -> tuple[Any, ...]:
        """Return the names of some slots' tasks, each with its entry in every column."""
        return tuple(
            (self.task_name(slot), *(float(column[slot]) for column in columns))
            for slot in slots.tolist()
        )

    def _overview(self) -> Explanation:
        return Explanation(**self._overview_fields())

    def _overview_fields(self) -> dict[str, Any]:
        return {
            "curriculum": type(self).__name__,
            "num_tasks": self.pool.num_slots,
            "num_quarantined": self.num_quarantined,
            "episodes": self.num_observed,
            "plan_version": self.plan.version,
            # Draws are those of the whole plan: the outermost curriculum reports them.
            **(self._about_draws() if self._root is self else {}),
        }

    def _about_draws(self) -> dict[str, Any]:
        probs, method = self.probs(), self.in_force()
        num_crowded, share = crowd(probs)
        fields: dict[str, Any] = {"num_crowded": num_crowded, "crowded_share": share}
        if method.config.target is not None:
            success = method.target_success
            fields["target"] = str(method.config.target)
            fields["target_success"] = None if math.isnan(success) else success
            fields["stepping_stones"] = float(probs[method.counts() <= 0.0].sum())
        return fields


def nothing_active() -> str:
    """Say that there is nothing left to draw."""
    return (
        "no task is left to draw: envs could not build any of them. See `curriculum.quarantined` "
        "for the reasons, and fix the tasks or the env."
    )
