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
near one, such as a score without a top: `LearningProgress` asks for change alone.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from stepladder.curricula import frontier_kernels as rules
from stepladder.curricula.base import Curriculum
from stepladder.curricula.config import Tasks, settle
from stepladder.curricula.eviction import SOME_TO_REPLACE, take_noted
from stepladder.curricula.explanation import Explanation
from stepladder.curricula.frontier_config import FrontierConfig
from stepladder.curricula.frontier_kernels import (
    FAILURES,
    IN_ZONE,
    LAYER,
    LEVEL,
    MASTERED,
    PROBED,
    STATE,
    SUCCESSES,
    TRIAL_PLAYS,
)
from stepladder.curricula.kernels import Floats, Words
from stepladder.curricula.neighbors import feature_table, link_neighbors
from stepladder.curricula.plan import Grouping
from stepladder.curricula.record import RecordArray
from stepladder.curricula.snapshot import Snapshot, matching
from stepladder.errors import SnapshotError
from stepladder.tasks.plain import whole_number

STATE_NAMES = ("probed", "zone", "mastered")
"""Names of the states, by number."""


@dataclass(frozen=True, kw_only=True)
class FrontierExplanation(Explanation):
    """Where the frontier runs."""

    num_probed: int
    """Tasks not seen to be learnable."""

    num_in_zone: int
    """Tasks that are learnable now."""

    num_mastered: int
    """Tasks that nearly always succeed."""

    num_evicted: int
    """Tasks that made room for others so far."""

    zone: tuple[tuple[str, float, float], ...]
    """Some of the tasks in the zone: name, success rate, probability."""

    def lines(self) -> list[str]:
        """Return the text, line by line."""
        return [
            *super().lines(),
            f"{self.num_in_zone} tasks are learnable now, {self.num_mastered} are mastered, "
            f"{self.num_probed} are being probed, {self.num_evicted} have been replaced.",
            *(f"  {name:<24} success {p:.2f}, probability {q:.4f}" for name, p, q in self.zone),
        ]


class Frontier(Curriculum):
    """Draws the tasks that succeed sometimes and are getting better.

    Args:
        tasks: A source, a pool or a list of tasks.
        config: The settings; or give them as keywords.
        seed: Seed of all draws.
        capacity: Number of slots; with more tasks in the source than that, tasks are evicted.
        **settings: Fields of `FrontierConfig`.
    """

    config: FrontierConfig  # pyright: ignore[reportIncompatibleVariableOverride]

    def __init__(
        self,
        tasks: Tasks,
        config: FrontierConfig | None = None,
        *,
        seed: int = 0,
        capacity: int | None = None,
        **settings: Any,
    ):
        config = settle(FrontierConfig, config, settings)
        super().__init__(tasks, config, seed=seed, capacity=capacity)
        self.num_evicted = 0
        """Tasks that made room for others so far."""
        num_slots = self.pool.num_slots
        self._rows: Floats = np.zeros((num_slots, rules.NUM_COLUMNS))
        self._rows[:, LAYER] = -1.0
        self._weights: Floats = self.pool.base_weights.copy()
        self._near: Words = np.zeros(num_slots, dtype=np.int64)
        self._links: Words = np.zeros(0, dtype=np.int64)
        self._num_layers = rules.NUM_LAYERS_WITHOUT_FEATURES
        if config.features:
            table = feature_table(self.pool, config.features)
            self._links = link_neighbors(table, config.num_neighbors * len(config.features))
            self._num_layers = rules.NUM_LAYERS
        self._settings = self._tabulate(config)
        self._numbers: Floats = np.zeros(rules.NUM_NUMBERS)
        self._ints: Words = np.zeros(rules.NUM_INTS, dtype=np.int64)
        self.counters = self._ints[: rules.I_SIDES]

    def _tabulate(self, config: FrontierConfig) -> Floats:
        settings = np.zeros(rules.NUM_SETTINGS)
        settings[rules.S_KEEP] = 0.5 ** (1.0 / config.halflife_episodes)
        settings[rules.S_MASTERY] = config.mastery
        settings[rules.S_LAPSE] = config.mastery - config.lapse
        # As many plays as it takes to tell the mastery line from an even chance.
        settings[rules.S_EVIDENCE] = min(4.0, 0.9 / (1.0 - settings[rules.S_KEEP]))
        settings[rules.S_PROBING], settings[rules.S_REHEARSAL] = config.probing, config.rehearsal
        settings[rules.S_TRIAL] = config.trial_episodes
        settings[rules.S_PROMOTE_Z], settings[rules.S_STUCK_Z] = config.promote_z, config.stuck_z
        settings[rules.S_PATIENCE] = config.patience_rounds
        settings[rules.S_EVICTS] = self.pool.can_replace and config.eviction_plays > 0
        settings[rules.S_EVICT_PLAYS] = config.eviction_plays
        return settings

    def _groupings(self) -> list[Grouping]:
        return [Grouping.layers(self.pool.num_slots, self._num_layers)]

    def _publish(self) -> None:
        assert self._plan is not None
        layers = self._rows[:, LAYER]
        layers[layers < 0] = rules.layer_of(self._ints, rules.FAR, 0)
        for layer in range(self._num_layers):
            self._fill_weights(np.where(layers == layer, self._weights, 0.0), layer)
        self._settle()

    def _settle(self) -> None:
        rules.settle(
            (self._plan or self.plan).block,
            self._table,
            self._settings,
            self._numbers,
            self._ints,
            self._num_layers,
        )

    def kernel_state(
        self,
    ) -> tuple[Words, int, Floats, Floats, Words, Words, Floats, Floats, Words, int]:
        """Return what the `absorb` kernel takes before the records, the plan's block first."""
        return (
            self.plan.block,
            self._table,
            self._rows,
            self._weights,
            self._near,
            self._links,
            self._settings,
            self._numbers,
            self._ints,
            self._num_layers,
        )

    def _update(self, records: RecordArray) -> int:
        status = rules.absorb(*self.kernel_state(), records)
        if status == SOME_TO_REPLACE:
            self.replace_noted()
        return status

    def replace_noted(self) -> None:
        """Replace the tasks that the last records showed to be mastered or hopeless."""
        for slot in take_noted(self._ints, rules.I_NUM_EVICTIONS):
            if not self.is_quarantined(slot):
                self.num_evicted += self._root._try_replace(slot)

    def _slot_replaced(self, slot: int) -> None:
        block = (self._plan or self.plan).block
        row = self._rows[slot]
        layer = int(row[LAYER])
        row[:] = 0.0
        row[LAYER] = -1.0
        self._weights[slot] = self.pool.base_weights[slot]
        if layer >= 0:
            self._set_weight(slot, 0.0, layer)
        # A newcomer is tried in the present round.
        rules.place(block, self._table, self._rows, self._weights, self._near, self._ints, slot, 0)
        self._settle()

    def _slot_lost(self, slot: int, reason: str) -> None:
        with self.plan.writing():
            self._settle()

    # Looking.

    def states(self) -> list[str]:
        """Return where every slot stands: ``probed``, ``zone`` or ``mastered``."""
        return [STATE_NAMES[int(state)] for state in self._rows[:, STATE]]

    def rates(self) -> Floats:
        """Return every slot's discounted success rate, a little towards one half."""
        successes, failures = self._rows[:, SUCCESSES], self._rows[:, FAILURES]
        return (successes + rules.PRIOR) / (successes + failures + 2.0 * rules.PRIOR)

    def scores(self) -> Floats:
        """Return what there is left to learn: 1 - success rate in the zone, 0 elsewhere."""
        return np.where(self._rows[:, STATE] == IN_ZONE, 1.0 - self.rates(), 0.0)

    def _explain(self) -> FrontierExplanation:
        states, rates, probs = self._rows[:, STATE], self.rates(), self.probs()
        zone = np.flatnonzero(states == IN_ZONE)
        shown = zone[np.argsort(-probs[zone], kind="stable")][:5]
        return FrontierExplanation(
            **self._overview_fields(),
            num_probed=int(np.sum(states == PROBED)),
            num_in_zone=len(zone),
            num_mastered=int(np.sum(states == MASTERED)),
            num_evicted=self.num_evicted,
            zone=tuple(
                (self.pool.task(slot).name, float(rates[slot]), float(probs[slot]))
                for slot in shown.tolist()
            ),
        )

    def _reason(self, slot: int) -> tuple[str, dict[str, float]]:
        row = self._rows[slot]
        rate, level = float(self.rates()[slot]), float(row[LEVEL])
        numbers = {
            "success": rate,
            "level": level,
            "plays_in_state": float(row[TRIAL_PLAYS]),
            "weighed_plays": float(row[SUCCESSES] + row[FAILURES]),
        }
        if row[STATE] == IN_ZONE:
            return f"it is learnable now: success {rate:.2f}, up from {level:.2f}", numbers
        if row[STATE] == MASTERED:
            return (
                f"it is mastered (success {rate:.2f}) and rehearsed in turn; below "
                f"{self.config.mastery - self.config.lapse:.2f} it would be practised again"
            ), numbers
        if row[SUCCESSES] + row[FAILURES] == 0.0:
            return "it has never been played and waits for its turn to be probed", numbers
        near = " and first, being close to a mastered task" if self._near[slot] > 0 else ""
        return f"it has not risen above its level of {level:.2f}; it is probed in turn{near}", (
            numbers
        )

    def _save(self) -> Snapshot:
        return Snapshot(
            {"num_evicted": self.num_evicted},
            {name: array.copy() for name, array in self._arrays().items()},
        )

    def _load(self, snapshot: Snapshot) -> None:
        self.num_evicted = whole_number(
            snapshot.state["num_evicted"], "The snapshot's num_evicted", 0, 2**61, SnapshotError
        )
        for name, array in self._arrays().items():
            array[:] = matching(snapshot.arrays, name, array)

    def _arrays(self) -> dict[str, Any]:
        return {
            "rows": self._rows,
            "weights": self._weights,
            "near": self._near,
            "numbers": self._numbers,
            "ints": self._ints,
        }
