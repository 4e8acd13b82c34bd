"""Favour tasks whose success is still moving, up or down.

Gets records from `sync`, gives weights back; when its source has more tasks than the pool, tasks
without progress make room for new ones.

After Kanitscheider et al. 2021, "Multi-task curriculum learning in a complex, visual, hard
exploration domain", with what measuring showed to be missing there: an average starts from nothing
rather than from zero, sampling noise is not progress (it is subtracted), and exploration is a share
of probability rather than a score. docs/learning_progress.md lists the differences one by one.

A task that never succeeds and one that always does look the same here: both have stopped moving, so
both fade to the exploration share. Do not use this when the order of tasks is known; `Staged` is
simpler and does not have to find out.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from stepladder.arrays import Floats, Words
from stepladder.compiled import direct
from stepladder.curricula.batch_rule import CompiledRule, settle_noted
from stepladder.curricula.intake import NO_NUMBER, Intake
from stepladder.curricula.learning_progress import kernels
from stepladder.curricula.learning_progress.config import LearningProgressConfig
from stepladder.curricula.learning_progress.kernels import (
    BY_NOVELTY,
    BY_PROGRESS,
    Constants,
    Scale,
    State,
)
from stepladder.curricula.learning_progress.label_progress import (
    LEAST_SLOPE,
    USUAL_AT_FIRST,
    slope_of,
)
from stepladder.curricula.pooled.labels import LabelPooling, best_labels, know_nothing
from stepladder.curricula.pooled.pooling import rates_of
from stepladder.curricula.ranking import RankedMethod
from stepladder.curricula.reporting.explanation import EvictingExplanation
from stepladder.curricula.returns import signal_settings
from stepladder.plans.plan import Grouping, aligned_words
from stepladder.plans.record import Draw
from stepladder.plans.status import TO_REPLACE
from stepladder.records import Records, settings_record, zeros
from stepladder.saving.saved_array import MAX_FLOAT, require_parts
from stepladder.stats.averages import AveragePair


@dataclass(frozen=True, kw_only=True)
class ProgressExplanation(EvictingExplanation):
    """Where the progress is."""

    num_novices: int
    """Tasks played too rarely to be judged."""

    num_progressing: int
    """Tasks with progress beyond noise."""

    top: tuple[tuple[str, float, float], ...]
    """The tasks with the most progress: name, progress, probability."""

    labels: tuple[tuple[str, float, float], ...] = ()
    """The labels with the most progress, if tasks are pooled: name, change of success per 1,000
    plays of the label, share of the draws."""

    def lines(self) -> list[str]:
        """Return the text, line by line."""
        return [
            *super().lines(),
            *(
                ["Tasks of a kind are judged together, by how much their results change."]
                if self.labels
                else [f"Tasks that make progress beyond noise: {self.num_progressing}."]
            ),
            f"Tasks: {self.num_novices} hardly known, {self.num_evicted} replaced so far.",
            *(
                f"  {name:<24} progress {p:.{'3f' if p >= 0.001 else '2g'}}, probability {q:.4f}"
                for name, p, q in self.top
            ),
            *(
                f"  label {name:<18} {change:.3f} in 1,000 plays, share {share:.4f}"
                for name, change, share in self.labels
            ),
        ]


class LearningProgress(LabelPooling, RankedMethod):  # pyright: ignore[reportIncompatibleVariableOverride]
    """Draws tasks by how much their success is changing."""

    Config = LearningProgressConfig
    config: LearningProgressConfig  # pyright: ignore[reportIncompatibleVariableOverride]
    rule = CompiledRule(kernels.observe_one, settle_noted)
    _observe_kernel = kernels.observe

    def _set_up(self) -> None:
        super()._set_up()
        self.needs_success = self.config.signal == "success"
        num_slots, by_return = self.pool.num_slots, self.config.signal == "return"
        cells, num_cells = self._find_cells()
        state = zeros(
            State,
            tasks=num_slots,
            filed=num_slots,
            spreads=num_slots * by_return or 1,
            evidence=num_slots * self.pools or 1,
            labels=num_cells,
        )
        know_nothing(state.labels, state.pooling)
        state.usual["square"] = USUAL_AT_FIRST**2
        state.labels["progress"] = slope_of(0.5) * USUAL_AT_FIRST
        self._keep_kernel_state(state, self._make_constants(cells))
        self._single = Intake()
        self._observe_single = direct(
            kernels.observe_single,
            *(aligned_words(1), 0, state, self._constants),
            *(0, 0, 0.0, 0.0, 0),
        )

    def _make_constants(self, cells: Words) -> Constants:
        config = self.config
        pair = AveragePair.of_halflives(
            config.fast_halflife_episodes, config.slow_halflife_episodes
        )
        noise_z = config.noise_z
        if noise_z is None:
            noise_z = float(np.sqrt(2.0 * np.log(max(2, self.pool.num_slots))))
        settings = settings_record(
            config,
            pools=self.pools,
            keep=1.0 - pair.slow_rate,
            fast_rate=pair.fast_rate,
            slow_rate=pair.slow_rate,
            noise_z=float(noise_z),
            eviction_share=self._eviction_share(config.eviction_percentile),
            **signal_settings(config),
        )
        scales = Scale.zeros(len(pair.noise))
        # Entry 0 is never read: progress needs two plays.
        scales["fast"] = 1.0 / np.maximum(pair.fast_sums, 1e-300)
        scales["slow"] = 1.0 / np.maximum(pair.slow_sums, 1e-300)
        scales["noise"], scales["count"] = pair.noise, pair.counts
        scales["per_count"] = 1.0 / (pair.counts + 2.0)
        return Constants(settings, scales, cells)

    def _groupings(self) -> list[Grouping]:
        if self.pools:
            return [Grouping(self._constants.cells, len(self._state.labels))]
        return [Grouping.layers(self.pool.num_slots, 2)]

    def _publish(self) -> None:
        assert self._plan is not None
        if self.pools:
            self._fill_weights(self.pool.base_weights)
            kernels.set_shares(*self.kernel_state()[:3])
            return
        tasks, weights = self._state.tasks, self.pool.base_weights
        novices = tasks["num_plays"] < self.config.novice_plays
        self._fill_weights(tasks["progress"] * weights, BY_PROGRESS)
        self._fill_weights(np.where(novices, weights, 0.0), BY_NOVELTY)
        shares = self._plan.shares(self._table)
        shares[BY_PROGRESS], shares[BY_NOVELTY] = 1.0 - self.config.novelty, self.config.novelty

    def report(
        self,
        draw: Draw,
        success: float,
        episode_return: float = 0.0,
        length: int = 1,
        truncated: bool = False,
    ) -> None:
        """Observe one episode; the same as observing its record, in one compiled call.

        Raises:
            RecordError: A number is impossible. Then nothing was observed.
        """
        if self._listeners:
            # Listeners need records, and the shortcut below makes none.
            super().report(draw, success, episode_return, length, truncated)
            return
        if self._due is not None:
            self.finish()
        # An empty batch: what is left to do after the call below is to replace what it notes.
        due = self._due
        self._due = self._single if due is None else Intake(outer=due)
        try:
            status = self._observe_single(
                (self._plan or self.plan).block,
                self._table,
                self._state,
                self._constants,
                draw[0],
                draw[1],
                success,
                episode_return,
                length,
            )
        except NO_NUMBER:
            status = 0
        if status == TO_REPLACE:
            self._replace_noted()
        self._due = due
        if status >= 0:
            # It is bad, and nothing has changed; the general way says what is wrong with it.
            super().report(draw, success, episode_return, length, truncated)

    def _slot_replaced(self, slot: int) -> None:
        super()._slot_replaced(slot)
        if self.config.signal == "return":
            self._state.spreads["variance"][slot] = 0.0
        weight = float(self.pool.base_weights[slot])
        if self.pools:
            self._state.evidence[slot : slot + 1] = 0
            self._set_weight(slot, weight)
            kernels.set_shares(*self.kernel_state()[:3])
            return
        self._set_weight(slot, 0.0, BY_PROGRESS)
        self._set_weight(slot, weight * (self.config.novice_plays > 0), BY_NOVELTY)

    def _slot_lost(self, slot: int, reason: str) -> None:
        if self.pools:
            with self.plan.writing():
                kernels.set_shares(*self.kernel_state()[:3])

    def progress(self) -> Floats:
        """Return every slot's progress, noise taken off; 0 for a task hardly known.

        If tasks are pooled by label: the expected change of the task's success per play of its
        label, hardly known tasks included.
        """
        state = self._state
        if not self.pools:
            return state.tasks["progress"].copy()
        cells, strength = self._constants.cells, float(state.pooling["strength"][0])
        label_rates: Floats = state.labels["rate"][cells]
        rates = rates_of(state.evidence, label_rates, strength)
        part = np.maximum(LEAST_SLOPE, rates * (1.0 - rates))
        part /= np.maximum(LEAST_SLOPE, label_rates * (1.0 - label_rates))
        left = 0.5 ** state.evidence["trial"]["num_stuck"]
        return left * part * state.labels["progress"][cells]

    def label_progress(self) -> dict[str, float]:
        """Return the change of every label's success per play, if tasks are pooled by label."""
        if not self.pools:
            return {}
        progress = self._state.labels["progress"].tolist()
        return dict(zip(self._kind_names(), progress, strict=True))

    def scores(self) -> Floats:
        """Return every slot's `progress`."""
        return self.progress()

    def _explain(self) -> ProgressExplanation:
        progress, plays, probs = self.progress(), self.plays(), self.probs()
        best = np.argsort(-progress, kind="stable")[:5]
        return ProgressExplanation(
            **self._overview_fields(),
            num_novices=int(np.sum(plays < self.config.novice_plays)),
            num_progressing=int(np.sum(progress > 0)),
            top=self._top(best[progress[best] > 0], progress, probs),
            labels=best_labels(
                {name: 1000.0 * one for name, one in self.label_progress().items()},
                self._cells.of_slot,
                probs,
            ),
        )

    def _reason(self, slot: int) -> tuple[str, dict[str, float]]:
        task = self._state.tasks[slot : slot + 1]
        plays, progress = int(task["num_plays"][0]), float(task["progress"][0])
        numbers = {"plays": float(plays), "progress": progress}
        if plays > 0:
            scale = self._scales(task["num_plays"])
            numbers["fast"] = float(task["fast"][0] * scale["fast"][0])
            numbers["slow"] = float(task["slow"][0] * scale["slow"][0])
        if self.pools:
            return self._pooled_reason(slot, numbers)
        if progress > 0:
            return "its success is changing beyond noise", numbers
        if plays < self.config.novice_plays:
            return "it is hardly known and takes part in the share for new tasks", numbers
        return "its success has stopped changing, so exploration alone draws it", numbers

    def _pooled_reason(self, slot: int, numbers: dict[str, float]) -> tuple[str, dict[str, float]]:
        state: Any = self._state
        cell, stuck = (
            int(self._cells.of_slot[slot]),
            int(state.evidence["trial"]["num_stuck"][slot]),
        )
        numbers["progress"] = float(self.progress()[slot])
        numbers["label_progress"] = float(state.labels["progress"][cell])
        numbers["label_success"] = float(state.labels["rate"][cell])
        what = "success" if self.config.signal == "success" else "return, scaled to its range,"
        reason = (
            f"the {what} of its label, {numbers['label_success']:.0%}, changes by about "
            f"{1000.0 * numbers['label_progress']:.2g} in 1,000 plays"
        )
        if numbers["plays"] == 0:
            return f"it is untried; {reason}", numbers
        if stuck:
            reason += f"; nothing has changed in its own last {stuck + 1} trials, so it fades"
        return reason, numbers

    def _scales(self, plays: Words) -> Records[Scale]:
        scales = self._constants.scales
        return scales[np.minimum(plays, len(scales) - 1)]

    @property
    def _keeps_returns(self) -> bool:
        """Whether averages hold returns as they are, because their range is found out."""
        return self.config.signal == "return" and self.config.return_range is None

    def _saved_limits(self) -> dict[str, tuple[Any, Any]]:
        limits = super()._saved_limits()
        if self._keeps_returns:
            limits |= {f"tasks.{name}": (-MAX_FLOAT, MAX_FLOAT) for name in ("fast", "slow")}
        return limits

    def _check_loaded(self, place: str) -> None:
        super()._check_loaded(place)
        if self._keeps_returns:
            return
        tasks = self._state.tasks
        scales = self._scales(tasks["num_plays"])
        # Averages begin at 0, and are made larger the fewer plays they have: none passes 1.
        is_played = tasks["num_plays"] > 0
        most = np.where(is_played, 1.0 + 1e-6, 0.0)
        require_parts(
            "tasks",
            place,
            corrected_fast_average=(tasks["fast"] * np.where(is_played, scales["fast"], 1.0), most),
            corrected_slow_average=(tasks["slow"] * np.where(is_played, scales["slow"], 1.0), most),
        )
