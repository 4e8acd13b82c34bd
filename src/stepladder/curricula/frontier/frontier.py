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

from typing import Any

import numpy as np

from stepladder.curricula.config import Tasks, settle
from stepladder.curricula.evicting import Evicting
from stepladder.curricula.eviction import SOME_TO_REPLACE, noted_parts
from stepladder.curricula.frontier import kernels as frontier_kernels
from stepladder.curricula.frontier import rounds
from stepladder.curricula.frontier.config import PRIOR, FrontierConfig
from stepladder.curricula.frontier.neighbors import feature_table, link_neighbors
from stepladder.curricula.frontier.report import STATE_NAMES, FrontierExplanation, reason_for
from stepladder.curricula.frontier.rounds import (
    FAILURES,
    IN_ZONE,
    LAYER,
    MASTERED,
    ORIGIN,
    PROBED,
    STATE,
    SUCCESSES,
    Board,
)
from stepladder.errors import SnapshotError
from stepladder.plans.kernels import Floats, Words
from stepladder.plans.plan import Grouping
from stepladder.plans.record import RecordArray
from stepladder.saving.saved_array import MAX_COUNT, Part, SavedArray, require_parts

NO_LAYER = -1.0
NEW_ROW: Floats = np.zeros(rounds.NUM_COLUMNS)
NEW_ROW[LAYER] = NO_LAYER


class Frontier(Evicting):
    """Draws the tasks that succeed sometimes and are getting better.

    Args:
        tasks: A source, a pool or a list of tasks.
        config: The settings; or give them as keywords.
        seed: Seed of all draws.
        capacity: Number of slots; with more tasks in the source than that, tasks are evicted.
        **settings: Fields of `FrontierConfig`.
    """

    Config = FrontierConfig
    config: FrontierConfig  # pyright: ignore[reportIncompatibleVariableOverride]
    _noted_at = rounds.I_NUM_EVICTIONS
    rule = frontier_kernels.RULE
    initial_state = STATE_NAMES[PROBED]

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
        num_slots = self.pool.num_slots
        self._rows: Floats = np.zeros((num_slots, rounds.NUM_COLUMNS))
        self._rows[:, LAYER] = NO_LAYER
        self._near: Words = np.zeros(num_slots, dtype=np.int64)
        self._links: Words = np.zeros(0, dtype=np.int64)
        self._num_layers = rounds.NUM_LAYERS_WITHOUT_FEATURES
        if config.features:
            table = feature_table(self.pool, config.features)
            self._links = link_neighbors(table, config.num_neighbors * len(config.features))
            self._num_layers = rounds.NUM_LAYERS
        self._settings = self._tabulate(config)
        self._findings: Floats = np.zeros(rounds.NUM_FINDINGS)
        self._ints: Words = np.zeros(rounds.NUM_INTS, dtype=np.int64)
        self.counters = self._ints[: rounds.I_SIDES]

    def _tabulate(self, config: FrontierConfig) -> Floats:
        """Write the settings as the numbers that the kernels read."""
        settings = np.zeros(rounds.NUM_SETTINGS)
        settings[rounds.S_KEEP] = config.keep
        settings[rounds.S_MASTERY] = config.mastery
        settings[rounds.S_LAPSE] = config.mastery - config.lapse
        settings[rounds.S_EVIDENCE] = config.evidence
        settings[rounds.S_PROBING] = config.probing
        settings[rounds.S_REHEARSAL] = config.rehearsal
        settings[rounds.S_TRIAL] = config.trial_episodes
        settings[rounds.S_PROMOTE_Z] = config.promote_z
        settings[rounds.S_STUCK_Z] = config.stuck_z
        settings[rounds.S_PATIENCE] = config.patience_rounds
        settings[rounds.S_EVICTS] = self.pool.can_replace and config.eviction_plays > 0
        settings[rounds.S_EVICT_PLAYS] = config.eviction_plays
        return settings

    def _groupings(self) -> list[Grouping]:
        return [Grouping.layers(self.pool.num_slots, self._num_layers)]

    def _board(self) -> Board:
        return Board(
            (self._plan or self.plan).block,
            self._table,
            self._rows,
            self.pool.base_weights,
            self._near,
            self._links,
            self._settings,
            self._findings,
            self._ints,
        )

    def kernel_state(self) -> tuple[Any, ...]:
        """Return what the `absorb` kernel takes before the records, the plan's block first."""
        return (*self._board(), self._num_layers)

    def _publish(self) -> None:
        layers = self._rows[:, LAYER]
        layers[layers == NO_LAYER] = rounds.layer_of(self._ints, rounds.FAR, 0)
        for layer in range(self._num_layers):
            self._fill_weights(np.where(layers == layer, self.pool.base_weights, 0.0), layer)
        self._settle()

    def _settle(self) -> None:
        """Begin the rounds that are due and share out the draws; called inside a write."""
        board = self._board()
        frontier_kernels.settle(
            board.block, board.table, board.settings, board.findings, board.ints, self._num_layers
        )

    # Learning.

    def _update(self, records: RecordArray, num_done: int) -> int:
        status = SOME_TO_REPLACE
        if len(records) and not num_done:
            status = frontier_kernels.absorb(*self._board(), self._num_layers, records)
        if status == SOME_TO_REPLACE:
            self._replace_noted()
        return status

    def _is_due(self, slot: int) -> bool:
        # Later records of the same batch may have shown that it is neither mastered nor hopeless.
        return bool(frontier_kernels.may_go(self._rows[slot], self._settings))

    def _slot_replaced(self, slot: int) -> None:
        # With features this never happens, since the pool has all tasks: nobody need be told.
        row = self._rows[slot]
        if row[LAYER] != NO_LAYER:
            self._set_weight(slot, 0.0, int(row[LAYER]))
        row[:] = NEW_ROW
        # A newcomer is tried in the present round.
        rounds.place(self._board(), slot, 0)
        self._settle()

    def _slot_lost(self, slot: int, reason: str) -> None:
        # It may have been the last of its round.
        board = self._board()
        frontier_kernels.settle_anew(
            board.block, board.table, board.settings, board.findings, board.ints, self._num_layers
        )

    # Looking.

    def states(self) -> list[str]:
        """Return where every slot stands: ``probed``, ``zone`` or ``mastered``."""
        return [STATE_NAMES[int(state)] for state in self._rows[:, STATE]]

    def rates(self) -> Floats:
        """Return every slot's discounted success rate, a little towards one half."""
        successes, failures = self._rows[:, SUCCESSES], self._rows[:, FAILURES]
        return (successes + PRIOR) / (successes + failures + 2.0 * PRIOR)

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
            num_barren_rounds=int(self._findings[rounds.N_BARREN]),
            zone=tuple(
                (
                    self.pool.source.name(int(self.pool.task_ids[slot])),
                    float(rates[slot]),
                    float(probs[slot]),
                )
                for slot in shown.tolist()
            ),
        )

    def _reason(self, slot: int) -> tuple[str, dict[str, float]]:
        return reason_for(self._rows[slot], bool(self._near[slot] > 0), self.config)

    # Saving and resuming.

    def _saved_arrays(self) -> list[SavedArray]:
        rows = (
            Part("successes", np.s_[:, SUCCESSES], 0.0, MAX_COUNT),
            Part("failures", np.s_[:, FAILURES], 0.0, MAX_COUNT),
            Part.count("state", np.s_[:, STATE], MASTERED),
            Part.share("level", np.s_[:, rounds.LEVEL]),
            Part.count("plays of the trial", np.s_[:, rounds.TRIAL_PLAYS]),
            Part("successes of the trial", np.s_[:, rounds.TRIAL_SUCCESSES], 0.0, MAX_COUNT),
            Part.count("layer", np.s_[:, LAYER], self._num_layers - 1),
            Part.count("origin", np.s_[:, ORIGIN], rounds.N_NEAR_FINDS),
        )
        ints = (
            Part.count("counters", np.s_[: rounds.I_SIDES]),
            Part.count("side", np.s_[rounds.I_SIDES : rounds.I_NUM_EVICTIONS], 1),
            *noted_parts(rounds.I_NUM_EVICTIONS, self.pool.num_slots),
        )
        return [
            SavedArray("rows", self._rows, rows),
            SavedArray("findings", self._findings, (Part("findings", low=0.0, high=MAX_COUNT),)),
            SavedArray("ints", self._ints, ints),
        ]

    def _check_loaded(self, place: str) -> None:
        rows = self._rows
        most = rows[:, rounds.TRIAL_PLAYS] + 1e-6
        require_parts("rows", place, successes_of_the_trial=(rows[:, rounds.TRIAL_SUCCESSES], most))
        if np.any(self._rows[:, ORIGIN] == rounds.N_FAR_PROBES):
            raise SnapshotError(
                f"array 'rows' of {place}: an origin is {rounds.N_FAR_PROBES}, which counts probes "
                "and not finds. Use an older one."
            )
        self._count_neighbors()

    def _count_neighbors(self) -> None:
        """Count every slot's mastered neighbours anew."""
        self._near[:] = 0
        if len(self._links):
            starts = self._links
            for slot in np.flatnonzero(self._rows[:, STATE] == MASTERED).tolist():
                # A list names a slot once, so this adds up.
                self._near[self._links[starts[slot] : starts[slot + 1]]] += 1
