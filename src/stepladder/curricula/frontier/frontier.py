"""Find the tasks that are learnable now, and practise those.

Gets records from `sync`, gives weights back; when its source has more tasks than the pool, tasks
that are mastered or hopeless make room for new ones.

Every task is in one of three states. *In the zone*: it succeeds now and then, and it keeps getting
better: most draws go there. *Mastered*: it nearly always succeeds: it is rehearsed in turn, rarely,
and comes back when it lapses. *Probed*: it has shown nothing beyond its old level yet: such tasks
are tried in turn until one beats that level. A task that stays in the zone without getting better
goes back to being probed at the level it has, so a coin toss does not pass for something to learn.

The method is ours; it is what remains of Vygotsky's zone of proximal development (1978) when the
only instrument is a success rate. Do not use it when success is not a rate that practice can bring
near one, such as a score without a top: `LearningProgress` asks for change alone. Do not use it
when the order of tasks is known; `Staged` does not have to find out.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from stepladder.arrays import Floats, Words
from stepladder.curricula.batch_rule import CompiledRule
from stepladder.curricula.compiled_method import CompiledMethod
from stepladder.curricula.config import FEW_TASKS
from stepladder.curricula.frontier import kernels
from stepladder.curricula.frontier.config import PRIOR, FrontierConfig
from stepladder.curricula.frontier.kernels import LEAST_SUCCESSES
from stepladder.curricula.frontier.neighbors import MAX_COMPARED_TASKS, link_neighbors
from stepladder.curricula.frontier.rounds import (
    FAR,
    IN_ZONE,
    MASTERED,
    NO_LAYER,
    NUM_FRONTIER_LAYERS,
    NUM_LAYERS_WITHOUT_FEATURES,
    PROBED,
    Constants,
    State,
    place,
    set_need,
)
from stepladder.curricula.pooled.cells import find_cells
from stepladder.curricula.pooled.features import feature_table
from stepladder.curricula.pooled.labels import LabelPooling, know_nothing
from stepladder.curricula.pooled.pooling import NUM_CLOCKS, rates_of
from stepladder.curricula.reporting.explanation import EvictingExplanation
from stepladder.plans.plan import Grouping
from stepladder.records import settings_record, zeros
from stepladder.saving.saved_array import require_parts

SMALLEST = 1e-300
"""Taken as the largest weight of a pool in which no task has any."""

STANDINGS = ("probed", "zone", "mastered")
"""Names of where a task can stand, by number."""


@dataclass(frozen=True, kw_only=True)
class FrontierExplanation(EvictingExplanation):
    """Where the frontier runs."""

    num_probed: int
    """Tasks not seen to be learnable."""

    num_in_zone: int
    """Tasks that are learnable now."""

    num_mastered: int
    """Tasks that nearly always succeed."""

    num_barren_rounds: int
    """Rounds of probing since the last time anything new was mastered."""

    pace: float
    """Plays of practice that tasks mastered of late have taken; 0 if there were none."""

    zone: tuple[tuple[str, float, float], ...]
    """Some of the tasks in the zone, likeliest first: name, success rate, probability."""

    def lines(self) -> list[str]:
        """Return the text, line by line."""
        return [
            *super().lines(),
            f"Tasks: {self.num_in_zone} learnable now, {self.num_mastered} mastered, "
            f"{self.num_probed} being probed, {self.num_evicted} replaced so far.",
            f"Rounds of probing since anything new was mastered: {self.num_barren_rounds}.",
            *self._scale_lines(),
            *(f"  {name:<24} success {p:.2f}, probability {q:.4f}" for name, p, q in self.zone),
        ]

    def _scale_lines(self) -> Iterator[str]:
        if self.pace > 0.0:
            yield f"Tasks mastered of late have taken about {self.pace:.0f} plays of practice each."


class Frontier(LabelPooling, CompiledMethod):  # pyright: ignore[reportIncompatibleVariableOverride]
    """Draws the tasks that succeed sometimes and are getting better."""

    Config = FrontierConfig
    config: FrontierConfig  # pyright: ignore[reportIncompatibleVariableOverride]
    rule = CompiledRule(kernels.observe_one, kernels.settle)
    _observe_kernel = kernels.observe
    initial_state = STANDINGS[PROBED]

    def _set_up(self) -> None:
        super()._set_up()
        config = self.config
        links: Words = np.zeros(0, dtype=np.int64)
        has_neighbors = bool(config.features) and self.pool.num_slots <= MAX_COMPARED_TASKS
        self._num_layers = NUM_FRONTIER_LAYERS if has_neighbors else NUM_LAYERS_WITHOUT_FEATURES
        if has_neighbors:
            table = feature_table(self.pool, config.features)
            links = link_neighbors(table, config.num_neighbors * len(config.features))
        # Among few tasks, neighbours say more than bins.
        features = config.features if self.pool.num_slots > FEW_TASKS else ()
        cells = self._cells = find_cells(self.pool, features)
        state = zeros(State, tasks=self.pool.num_slots, cells=cells.num_cells)
        state.tasks["layer"] = NO_LAYER
        state.tasks["worth"] = 1.0
        state.tasks["trial_length"] = config.trial_episodes
        know_nothing(state.cells, state.pooling)
        numbers = settings_record(
            config,
            keep=config.keep,
            evidence=config.evidence,
            lapses_below=config.mastery - config.lapse,
            heaviest=max(float(self.pool.base_weights.max()), SMALLEST),
            evicts=self.pool.can_replace and config.eviction_plays > 0,
            pools=self.pools,
        )
        near: Words = np.zeros(self.pool.num_slots, dtype=np.int64)
        kinds = (cells.of_slot, cells.members())
        constants = Constants(numbers, self.pool.base_weights, *kinds, near, links)
        self._keep_kernel_state(state, constants)

    def _expect_envs(self, num_envs: int) -> None:
        self._state.method["num_envs"] = num_envs

    def _groupings(self) -> list[Grouping]:
        return [Grouping.layers(self.pool.num_slots, self._num_layers)]

    def _publish(self) -> None:
        layers = self._state.tasks["layer"]
        layers[layers == NO_LAYER] = 1 + 2 * FAR + self._state.method["sides"][0, FAR]
        weights = self._state.tasks["worth"] * self.pool.base_weights
        for layer in range(self._num_layers):
            self._fill_weights(np.where(layers == layer, weights, 0.0), layer)
        kernels.settle(*self.kernel_state())

    def _is_due(self, slot: int) -> bool:
        # Later records of the same batch may have shown that it is neither mastered nor hopeless.
        return bool(kernels.may_go(self._state, self._constants, slot))

    def _slot_replaced(self, slot: int) -> None:
        # With features this never happens, since the pool has all tasks: no neighbour is concerned.
        tasks = self._state.tasks
        if tasks["layer"][slot] != NO_LAYER:
            self._set_weight(slot, 0.0, int(tasks["layer"][slot]))
        set_need(self._state, slot, 0.0)
        super()._slot_replaced(slot)
        # Into the present round.
        place(*self.kernel_state(), slot=slot, waits=0)
        kernels.settle(*self.kernel_state())

    def _slot_lost(self, slot: int, reason: str) -> None:
        set_need(self._state, slot, 0.0)
        # It may have been the last of its round.
        kernels.settle_anew(*self.kernel_state())

    # Looking.

    def states(self) -> list[str]:
        """Return where every slot stands: ``probed``, ``zone`` or ``mastered``."""
        return [STANDINGS[standing] for standing in self._state.tasks["standing"].tolist()]

    def rates(self) -> Floats:
        """Return every slot's discounted success rate, a little towards one half."""
        successes, plays = self._shown()
        return (successes + PRIOR) / (plays + 2.0 * PRIOR)

    def _shown(self) -> tuple[Floats, Floats]:
        """Return every slot's discounted successes and plays, as `kernels.shown_by` does."""
        tasks, cells = self._state.tasks, self._state.cells[self._constants.cells]
        successes, plays = tasks["successes"], tasks["successes"] + tasks["failures"]
        if not self._constants.settings["pools"][0]:
            return successes, plays
        most = float(self._state.pooling["strength"][0])
        strength = np.minimum(most, cells["plays"][:, NUM_CLOCKS - 1])
        rates = rates_of(tasks, cells["rate"], np.where(strength + plays > 0.0, strength, 1.0))
        return (strength + plays) * rates, strength + plays

    def scores(self) -> Floats:
        """Return what there is left to learn: 1 - success rate in the zone, 0 elsewhere."""
        return np.where(self._state.tasks["standing"] == IN_ZONE, 1.0 - self.rates(), 0.0)

    def _explain(self) -> FrontierExplanation:
        standings, rates, probs = self._state.tasks["standing"], self.rates(), self.probs()
        zone = np.flatnonzero(standings == IN_ZONE)
        zone = zone[np.argsort(-probs[zone], kind="stable")]
        return FrontierExplanation(
            **self._overview_fields(),
            num_probed=int(np.sum(standings == PROBED)),
            num_in_zone=len(zone),
            num_mastered=int(np.sum(standings == MASTERED)),
            num_barren_rounds=int(self._state.method["barren_rounds"][0]),
            pace=float(self._state.method["pace"][0]),
            zone=self._top(zone[:5], rates, probs),
        )

    def _reason(self, slot: int) -> tuple[str, dict[str, float]]:
        task: Any = self._state.tasks[slot]
        config, rate, level = self.config, float(self.rates()[slot]), float(task["level"])
        numbers = {
            "success": rate,
            "level": level,
            "plays_in_trial": float(task["trial_plays"]),
            "trial_length": float(task["trial_length"]),
            "weighed_plays": float(task["successes"] + task["failures"]),
        }
        if task["standing"] == IN_ZONE:
            length, shortest = int(task["trial_length"]), config.trial_episodes
            times = f", {length / shortest:.3g} times the shortest" if length > shortest else ""
            return (
                f"it is learnable now: success {rate:.2f}, and within "
                f"{length - int(task['trial_plays'])} plays it must get beyond its level of "
                f"{level:.2f}; its trials take {length} plays{times}"
            ), numbers
        if task["standing"] == MASTERED:
            return (
                f"it is mastered (success {rate:.2f}) and rehearsed in turn; below "
                f"{config.mastery - config.lapse:.2f} it would be practised again"
            ), numbers
        is_near = self._constants.near[slot] > 0
        turn = ", among the first because a neighbour is mastered" if is_near else ""
        return f"{self._why_probed(task)}{turn}", numbers

    def _why_probed(self, task: Any) -> str:
        successes, count = task["successes"], task["successes"] + task["failures"]
        if count == 0.0:
            return "it has never been played and waits for its turn to be probed"
        if successes < LEAST_SUCCESSES:
            return "it has not succeeded recently; it is probed in turn"
        if successes >= self.config.mastery * count:
            return "it nearly always succeeded so far; it is probed in turn until that is sure"
        level = task["level"]
        return f"it has not risen above its level of {level:.2f}; it is probed in turn"

    # Saving and resuming.

    def _saved_limits(self) -> dict[str, tuple[Any, Any]]:
        return {**super()._saved_limits(), "tasks.layer": (0, self._num_layers - 1)}

    def _check_loaded(self, place: str) -> None:
        tasks = self._state.tasks
        most = tasks["trial_plays"] + 1e-6
        require_parts("tasks", place, successes_of_the_trial=(tasks["trial_successes"], most))
        near, links = self._constants.near, self._constants.links
        near[:] = 0  # how many neighbours of each slot are mastered
        if len(links):
            for slot in np.flatnonzero(self._state.tasks["standing"] == MASTERED).tolist():
                # A list names a slot once, so this adds up.
                near[links[links[slot] : links[slot + 1]]] += 1
