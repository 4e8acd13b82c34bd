"""Replay the tasks that surprised most when last played, and look at new ones in between.

Gets records from `sync` and, if wanted, scores from a trainer; gives weights back. When its source
has more tasks than the pool, tasks with low scores make room for new ones.

After Jiang, Grefenstette and Rocktäschel 2021, "Prioritized level replay": a draw is a replay or a
task not seen yet; replays go by the rank of a task's score, and some by how long ago it was played.
After Jiang et al. 2021, "Replay-guided adversarial environment design", too, whose robust variant
learns from replays only: `is_replay` says which draws are. docs/level_replay.md lists where a cost
that is flat in the number of tasks made us deviate from the papers.

A task whose result stays a surprise whatever is learned keeps the highest score. Do not use it with
tasks that are noisy by nature, nor with fewer tasks than would be worth remembering: the method is
made for many levels of one kind, of which a few dozen plays each are all that can be had.

With ``pooled=True`` tasks with the same label are judged together (`pooling`): a task's score is
drawn towards the mean score of its label as far as labels have predicted scores well, and a label
with high scores has its unseen tasks played first. By default, and where labels do not stand for
kinds of tasks, the method is the published one.
"""

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from stepladder.arrays import Floats, Words
from stepladder.curricula.batch_rule import CompiledRule, settle_noted
from stepladder.curricula.compiled_method import CompiledMethod
from stepladder.curricula.level_replay import kernels
from stepladder.curricula.level_replay.config import GREEDY_TEMPERATURE, LevelReplayConfig
from stepladder.curricula.level_replay.editing import Editing
from stepladder.curricula.level_replay.kernels import (
    BY_AGE,
    BY_RANK,
    BY_SCORE,
    NO_PLAN_VERSION,
    NUM_REPLAY_LAYERS,
    PROPORTIONAL,
    SOFTMAX,
    UNSEEN,
    Constants,
    State,
)
from stepladder.curricula.level_replay.ranks import NUM_RANK_BINS, powers_of_ranks
from stepladder.curricula.pooled.labels import LabelPooling, best_labels, know_nothing
from stepladder.curricula.pooled.pooling import rates_of
from stepladder.curricula.reporting.explanation import EvictingExplanation
from stepladder.curricula.returns import signal_settings
from stepladder.curricula.trainer_scores import PRIOR_MEAN, TrainerScored
from stepladder.errors import SnapshotError, counted
from stepladder.plans.plan import Grouping
from stepladder.plans.record import Draw
from stepladder.plans.status import TO_REPLACE
from stepladder.records import settings_record, zeros

_TRANSFORMS = {
    "rank": BY_RANK,
    "greedy": BY_RANK,
    "proportional": PROPORTIONAL,
    "softmax": SOFTMAX,
}


@dataclass(frozen=True, kw_only=True)
class LevelReplayExplanation(EvictingExplanation):
    """How much is replayed, and what."""

    num_seen: int
    """Tasks that have a score."""

    replay_prob: float
    """Probability that the next draw is a replay, exploration apart."""

    top: tuple[tuple[str, float, float], ...]
    """The tasks with the highest scores: name, score, probability."""

    num_edits: int = 0
    """Tasks in the pool that are edits of others."""

    deepest_edit: int = 0
    """Edits between the source and the task that is farthest from it."""

    labels: tuple[tuple[str, float, float], ...] = ()
    """The labels with the highest mean scores, if tasks are pooled: name, score, share of draws."""

    def lines(self) -> list[str]:
        """Return the text, line by line."""
        depth = counted(self.deepest_edit, "edit")
        edits = f"Edits of other tasks: {self.num_edits}, up to {depth} deep."
        return [
            *super().lines(),
            f"Tasks: {self.num_seen} with a score, {self.num_evicted} replaced so far; the next "
            f"draw is a replay with probability {self.replay_prob:.2f}.",
            *([edits] if self.num_edits else []),
            *(f"  {name:<24} score {s:.3f}, probability {q:.4f}" for name, s, q in self.top),
            *(f"  label {name:<18} score {s:.3f}, share {q:.4f}" for name, s, q in self.labels),
        ]


class LevelReplay(Editing, LabelPooling, TrainerScored, CompiledMethod):  # pyright: ignore[reportIncompatibleVariableOverride]
    """Draws tasks by the rank of their last scores, and unseen ones in between."""

    Config = LevelReplayConfig
    config: LevelReplayConfig  # pyright: ignore[reportIncompatibleVariableOverride]
    rule = CompiledRule(kernels.observe_one, settle_noted)
    _observe_kernel = kernels.observe

    def _set_up(self) -> None:
        super()._set_up()
        config = self.config
        self.needs_success = config.scored_by == "deviation" and config.signal == "success"
        num_slots = self.pool.num_slots
        cells, num_cells = self._find_cells()
        state = zeros(
            State,
            tasks=num_slots,
            seen=num_slots,
            seen_versions=num_slots,
            evidence=num_slots * self.pools or 1,
            labels=num_cells,
        )
        know_nothing(state.labels, state.pooling)
        state.tasks["mean"], state.tasks["best_return"] = PRIOR_MEAN, -np.inf
        state.tasks["weight"] = self.pool.base_weights
        state.seen["position"] = -1
        state.seen_versions["since"] = state.seen_versions["before"] = NO_PLAN_VERSION
        is_greedy = config.transform == "greedy"
        numbers = settings_record(
            config,
            pools=self.pools,
            keep=1.0 - config.newest_weight,
            uses_trainer=bool(config.trainer_score),
            **signal_settings(config),
            newest_weight=config.newest_weight,
            how=_TRANSFORMS[config.transform],
            power=1.0 / (GREEDY_TEMPERATURE if is_greedy else config.temperature),
            has_fixed_schedule=config.schedule == "fixed",
            eviction_share=self._eviction_share(config.eviction_percentile),
        )
        by_rank = int(numbers["how"][0]) == BY_RANK
        powers = powers_of_ranks(num_slots * by_rank, float(numbers["power"][0]))
        self._keep_kernel_state(state, Constants(numbers, cells, powers))
        self._forgotten: Words = np.full(2, -1, dtype=np.int64)
        """Slot and generation of the last newcomer."""

    def _groupings(self) -> list[Grouping]:
        return [Grouping(self._constants.cells, len(self._state.labels), NUM_REPLAY_LAYERS)]

    def _publish(self) -> None:
        # The other layers stay empty: the plan is built before the first record is taken.
        self._fill_weights(self.pool.base_weights, UNSEEN)
        kernels.write_shares(*self.kernel_state())

    def _slot_replaced(self, slot: int) -> None:
        kernels.forget(self._state, slot, int(self.pool.generations[slot]), self._forgotten)
        super()._slot_replaced(slot)
        weight = float(self.pool.base_weights[slot])
        self._state.tasks["weight"][slot] = weight
        if self.pools:
            self._state.evidence[slot : slot + 1] = 0
        self._set_weight(slot, 0.0, BY_SCORE)
        self._set_weight(slot, 0.0, BY_AGE)
        self._set_weight(slot, weight, UNSEEN)
        kernels.write_shares(*self.kernel_state())

    def _slot_lost(self, slot: int, reason: str) -> None:
        kernels.leave(self._state, slot)
        kernels.write_shares_anew(*self.kernel_state())

    # What a trainer gives and asks.

    def _take_scores(self, slots: Words, generations: Words, scores: Floats) -> None:
        block, table, state, constants = self.kernel_state()
        status = kernels.observe_scores(block, table, state, constants, slots, generations, scores)
        if status == TO_REPLACE:
            self._replace_noted()

    def is_replay(self, draw: Draw) -> bool:
        """Whether the task of a draw already had a score when it was drawn.

        Robust level replay takes gradients from replays only; other draws are for scoring.
        """
        return bool(self.are_replays(draw.slot, draw.generation, draw.plan_version)[0])

    def are_replays(
        self, slots: npt.ArrayLike, generations: npt.ArrayLike, plan_versions: npt.ArrayLike
    ) -> npt.NDArray[np.bool_]:
        """Answer `is_replay` for many episodes, named by what their infos hold.

        Right for the task in a slot and the one before it; False for any older task.
        """
        slot_list, generation_list, version_list = self._integers(slots, generations, plan_versions)
        behind = self.pool.generations[slot_list] - generation_list
        versions: Any = self._state.seen_versions[slot_list]
        since = cast("Words", np.where(behind == 0, versions["since"], versions["before"]))
        return ((behind == 0) | (behind == 1)) & (version_list >= since)

    # Looking.

    @property
    def replay_prob(self) -> float:
        """Probability that the next draw is a replay, exploration apart."""
        plan = self.plan
        roots = plan.groups(self._table)["tree_at"] + 1
        sums = plan.block.view(np.float64)[roots]
        shares = np.where(sums > 0.0, plan.shares(self._table), 0.0)
        num_replayed = UNSEEN * len(self._state.labels)
        return float(shares[:num_replayed].sum() / shares.sum()) if shares.sum() > 0.0 else 0.0

    @property
    def num_seen(self) -> int:
        """Tasks in play that have a score."""
        return int(self._state.method["num_seen"][0])

    def scores(self) -> Floats:
        """Return every slot's score; 0 for a task without one.

        If tasks are pooled it is what is known now: that of the label, moved as far as the task's
        own scores say.
        """
        state = self._state
        if not self.pools:
            return state.tasks["score"].copy()
        rates = state.labels["rate"][self._constants.cells]
        known = rates_of(state.evidence, rates, float(state.pooling["strength"][0]))
        left = 0.5 ** state.evidence["trial"]["num_stuck"]
        return np.where(state.seen["position"] >= 0, self._unit * left * known, 0.0)

    @property
    def _unit(self) -> float:
        """The score that counts as 1 in a label's mean."""
        return float(self._state.scores["high"][0]) if self.config.trainer_score else 1.0

    def label_scores(self) -> dict[str, float]:
        """Return the mean score of every label, if tasks are pooled by label; else nothing."""
        if not self.pools:
            return {}
        scores = self._unit * self._state.labels["rate"]
        return dict(zip(self._kind_names(), scores.tolist(), strict=True))

    def plays(self) -> Words:
        """Return how often each slot's task was played."""
        return self._state.tasks["num_plays"].copy()

    def best_returns(self) -> Floats:
        """Return the highest return of each slot's task, for `max_monte_carlo`; NaN if unplayed."""
        tasks = self._state.tasks
        return np.where(tasks["num_plays"] > 0, tasks["best_return"], np.nan)

    def _explain(self) -> LevelReplayExplanation:
        scores, probs = self.scores(), self.probs()
        seen = self._state.seen["listed"][: self.num_seen]
        best = seen[np.lexsort((seen, -scores[seen]))][:5]
        return LevelReplayExplanation(
            **self._overview_fields(),
            num_seen=self.num_seen,
            replay_prob=self.replay_prob,
            top=self._top(best, scores, probs),
            num_edits=self.num_edits,
            deepest_edit=self.deepest_edit,
            labels=best_labels(self.label_scores(), self._cells.of_slot, probs),
        )

    def _reason(self, slot: int) -> tuple[str, dict[str, float]]:
        task: Any = self._state.tasks[slot]
        numbers = {"plays": float(task["num_plays"])}
        shown = ""
        if self.pools:
            numbers["label_score"] = float(
                self._unit * self._state.labels["rate"][self._cells.of_slot[slot]]
            )
            shown = f"; its label has shown scores of about {numbers['label_score']:.3g}"
        if self._state.seen["position"][slot] < 0:
            reason = "it has no score yet and takes part in the share for unseen tasks"
            return reason + shown, numbers
        seen = self._state.seen["listed"][: self.num_seen]
        above = int(np.sum(self._state.tasks["bin"][seen] > task["bin"]))
        age = self.num_observed - self.num_orphaned - int(task["last_play"])
        numbers |= {"score": float(self.scores()[slot]), "rank": above + 1.0, "age": float(age)}
        return f"its score ranks {above + 1} of {self.num_seen}{shown}", numbers

    def _saved_limits(self) -> dict[str, tuple[Any, Any]]:
        num_slots, weights = self.pool.num_slots, self.pool.base_weights
        return {
            **super()._saved_limits(),
            "tasks.weight": (weights, weights),
            "seen.position": (-1, num_slots - 1),
            "seen.listed": (0, num_slots - 1),
            "method.num_seen": (0, num_slots),
            "method.next_reranked": (0, num_slots),
            "method.ranks.nodes": (0, num_slots),
        }

    def _check_loaded(self, place: str) -> None:
        """Refuse lists that disagree with each other: the kernels would write outside of arrays."""
        self._forgotten[:] = -1
        count, positions = self.num_seen, self._state.seen["position"]
        seen = np.flatnonzero(positions >= 0)
        in_order = np.array_equal(np.sort(positions[seen]), np.arange(count))
        listed = self._state.seen["listed"]
        if not in_order or not np.array_equal(listed[positions[seen]], seen):
            raise SnapshotError(
                f"array 'seen' of {place}: positions and slots disagree, so the list of seen tasks "
                "is damaged. Use an older one."
            )
        counts = np.bincount(self._state.tasks["bin"][seen], minlength=NUM_RANK_BINS)
        sums = np.concatenate([[0], np.cumsum(counts)])
        nodes = np.arange(1, NUM_RANK_BINS + 1)
        # Node n of a Fenwick tree counts the bins behind n without its lowest bit, up to n.
        expected = sums[nodes] - sums[nodes - (nodes & -nodes)]
        if not np.array_equal(expected, self._state.method["ranks"]["nodes"][0, 1:]):
            raise SnapshotError(
                f"array 'method' of {place}: the ranks do not count the bins of the scores. Use an "
                "older one."
            )
