"""Episodes counted per task and per label, each once, whatever env played them.

The lower half of `meter`: listens to the curriculum and credits every record to the task and the
label it was played with, also when that task has left its slot.
"""
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportAttributeAccessIssue=false
# pyright: reportReturnType=false, reportArgumentType=false
# Reason: NumPy's stubs do not know that an element of an integer array is an integer.

from typing import Annotated

import numpy as np
import numpy.typing as npt

from stepladder.arrays import Floats, Words
from stepladder.compiled import bare, direct
from stepladder.curricula.base import Curriculum
from stepladder.errors import RecordError
from stepladder.plans.record import RECORD_DTYPE, RecordFields
from stepladder.records import Count, Fields, Limits, Records
from stepladder.saving.saved_array import MAX_COUNT, Part, SavedArray, copy_arrays, restore_arrays
from stepladder.saving.saved_fields import read_count
from stepladder.saving.snapshot import Snapshot, require_snapshot


class TaskTally(Fields):
    """Sums over the episodes of the task that is in a slot now."""

    num_samples: Count
    num_epoch_samples: Count
    successes: Annotated[float, Limits(0.0, MAX_COUNT)]
    num_judged: Count
    """Episodes that reported success or failure."""
    returns: Annotated[float, Limits(-1e150, 1e150)]
    """Squares of such sums are added up."""
    lengths: Annotated[float, Limits(0.0, MAX_COUNT)]


class LabelTally(Fields):
    """Sums over the episodes of a label."""

    num_samples: Count
    num_epoch_samples: Count
    epoch_successes: Annotated[float, Limits(0.0, MAX_COUNT)]
    num_epoch_judged: Count


class LabelSteps(Fields):
    """Env steps of this epoch's episodes of a label that reported success or failure."""

    epoch_success_steps: Annotated[float, Limits(0.0, MAX_COUNT)]
    """Each episode counted by its success; the rest of it counts as failure."""
    epoch_failure_steps: Annotated[float, Limits(0.0, MAX_COUNT)]


class Counted(Fields):
    """How far counting has come."""

    batch: int
    """Records that the curriculum had observed with the last batch that was counted."""
    num_unlabelled: int
    """Records of tasks that left so long ago that their label is not known any more."""


NO_BATCH = -1

NONE_PAST: Words = np.zeros(0, dtype=np.int64)

MAX_PAST = 65_536
"""Replaced tasks whose label is remembered for results that are still to come."""


@bare
def count_records(
    records: Records[RecordFields],
    generations: Words,
    labels: Words,
    past: Words,
    slots: Records[TaskTally],
    by_label: Records[LabelTally],
    label_steps: Records[LabelSteps],
    counted: Records[Counted],
    number: int,
) -> bool:
    """Count records, all of them in one call that no interrupt divides.

    `generations` and `labels` are per slot. `past` has the label of each record whose task is not
    in its slot any more, in order; -1 if it is not known. `number` is that of the batch.

    Returns:
        Whether they were counted; if not, `past` is too short, and nothing has changed.
    """
    num_past = 0
    for index in range(len(records)):
        num_past += records[index].generation != generations[records[index].slot]
    if num_past > len(past):
        return False
    counted[0].batch = number
    num_past = 0
    for index in range(len(records)):
        record = records[index]
        has_success = record.success == record.success
        if record.generation == generations[record.slot]:
            label_index = labels[record.slot]
            task = slots[record.slot]
            task.num_samples += 1
            task.num_epoch_samples += 1
            task.returns += record.episode_return
            task.lengths += record.length
            if has_success:
                task.successes += record.success
                task.num_judged += 1
        else:
            label_index = past[num_past]
            num_past += 1
        if label_index < 0:
            counted[0].num_unlabelled += 1
            continue
        label = by_label[label_index]
        label.num_samples += 1
        label.num_epoch_samples += 1
        if has_success:
            label.epoch_successes += record.success
            label.num_epoch_judged += 1
            steps = label_steps[label_index]
            steps.epoch_success_steps += record.success * record.length
            steps.epoch_failure_steps += (1.0 - record.success) * record.length
    return True


class TaskCounts:
    """Counts what a curriculum observes, from now on."""

    def __init__(self, curriculum: Curriculum):
        self.curriculum = curriculum
        pool = curriculum.pool
        self.slots = TaskTally.zeros(pool.num_slots)
        """Sums per slot since its task came in, or counting began."""
        self.by_label = LabelTally.zeros(len(pool.label_names))
        """Sums per label."""
        self.label_steps = LabelSteps.zeros(len(pool.label_names))
        """Further sums per label; apart, because older snapshots have none."""
        self.labels: Words = pool.label_indices.copy()
        """Index of the label per slot."""
        self._counted = Counted.zeros()
        self._last_batch = self._counted["batch"]
        self._last_batch[0] = NO_BATCH
        self._task_ids, self._generations = pool.task_ids.copy(), pool.generations.copy()
        self._past: dict[tuple[int, int], int] = {}
        # Called for every batch: looking at the types of all arguments takes longer than the work.
        self._count_records = direct(
            *(count_records, np.zeros(0, RECORD_DTYPE), self._generations, self.labels, NONE_PAST),
            *(self.slots, self.by_label, self.label_steps, self._counted, 0),
        )
        curriculum.add_listener(self._count, on_replace=self._note_replaced)

    def close(self) -> None:
        """Stop counting; what was counted can still be read."""
        self.curriculum.remove_listener(self._count)

    @property
    def total_completions(self) -> int:
        """Episodes counted so far."""
        return int(self.by_label["num_samples"].sum()) + self.num_unlabelled

    @property
    def num_unlabelled(self) -> int:
        """Results of tasks that left so long ago that their label is not known any more."""
        return int(self._counted["num_unlabelled"][0])

    def _count(self, records: Records[RecordFields]) -> None:
        number = self.curriculum.num_observed
        if self._last_batch.item(0) == number:
            # Called again, because an interrupt came right after it was counted.
            return
        if not self._count_with(records, NONE_PAST, number):
            self._count_with(records, self._past_labels(records), number)

    def _count_with(self, records: Records[RecordFields], past: Words, number: int) -> bool:
        return self._count_records(
            *(records, self._generations, self.labels, past),
            *(self.slots, self.by_label, self.label_steps, self._counted, number),
        )

    def _past_labels(self, records: Records[RecordFields]) -> Words:
        """Return the labels of tasks that are gone, some of them by this very update."""
        gone = records[records["generation"] != self._generations[records["slot"]]]
        places = zip(gone["slot"].tolist(), gone["generation"].tolist(), strict=True)
        return np.array([self._past.get(place, -1) for place in places], dtype=np.int64)

    def _note_replaced(self, slot: int | None) -> None:
        if slot is None:
            self._synchronise()
            return
        if self._generations[slot] == self.curriculum.pool.generations[slot]:
            # Called again, because an interrupt came right after it was noted.
            return
        # Not a second time, when the label may be that of the new task already.
        self._past.setdefault((slot, int(self._generations[slot])), int(self.labels[slot]))
        if len(self._past) > MAX_PAST:
            del self._past[next(iter(self._past))]
        self._take_in(np.array([slot]))

    def _synchronise(self) -> None:
        """Start again with every slot whose task is not the one that was counted."""
        self._last_batch[0] = NO_BATCH
        pool = self.curriculum.pool
        self._past = {
            (slot, generation): label
            for (slot, generation), label in self._past.items()
            if generation < pool.generations[slot]
        }
        changed = (pool.task_ids != self._task_ids) | (pool.generations != self._generations)
        self._take_in(np.flatnonzero(changed))

    def _take_in(self, slots: Words) -> None:
        pool = self.curriculum.pool
        self.slots[slots] = np.zeros((), TaskTally.dtype)
        self.labels[slots] = pool.label_indices[slots]
        self._task_ids[slots] = pool.task_ids[slots]
        # Last: until then, they have not been taken in.
        self._generations[slots] = pool.generations[slots]

    def add_counts(
        self,
        counts: npt.ArrayLike,
        successes: npt.ArrayLike,
        returns: npt.ArrayLike = 0.0,
        lengths: npt.ArrayLike = 0.0,
        success_lengths: npt.ArrayLike = 0.0,
    ) -> None:
        """Count episodes that the curriculum did not observe one by one, as sums per slot.

        For an engine that plays in compiled code. All of them are credited to the tasks that are
        in the slots now, so report before a slot's task is replaced. Do not also `observe` them:
        they would count twice.

        Args:
            counts: Episodes per slot, shape ``(num_slots,)``.
            successes: Sum of their successes, per slot; at most `counts`.
            returns: Sum of their returns, per slot.
            lengths: Sum of their env steps, per slot.
            success_lengths: Sum of their env steps times their successes, per slot; at most
                `lengths`.

        Raises:
            RecordError: The numbers are impossible. Then nothing was counted.
        """
        plays, wins = self._per_slot(counts, "counts"), self._per_slot(successes, "successes")
        gains, steps = self._per_slot(returns, "returns"), self._per_slot(lengths, "lengths")
        successful = self._per_slot(success_lengths, "success_lengths")
        # Sums of many fractions may end a hair above the number of them.
        too_many = wins > plays * (1.0 + 1e-9)
        bad = (plays < 0) | (plays % 1 != 0) | (wins < 0) | too_many | (steps < 0)
        bad |= (successful < 0) | (successful > steps * (1.0 + 1e-9))
        if bad.any():
            slot = int(np.flatnonzero(bad)[0])
            raise RecordError(
                f"slot {slot} has {plays[slot]:g} episodes, {wins[slot]:g} successes and "
                f"{steps[slot]:g} steps; expected whole episodes, at most as many successes, and 0 "
                "steps or more, those of successes among them. Correct the sums and add them again."
            )
        counted = plays.astype(np.int64)
        for name in ("num_samples", "num_epoch_samples", "num_judged"):
            self.slots[name] += counted
        self.slots["successes"] += wins
        self.slots["returns"] += gains
        self.slots["lengths"] += steps
        for name in ("num_samples", "num_epoch_samples", "num_epoch_judged"):
            np.add.at(self.by_label[name], self.labels, counted)
        np.add.at(self.by_label["epoch_successes"], self.labels, wins)
        failed = np.maximum(0.0, steps - successful)
        np.add.at(self.label_steps["epoch_success_steps"], self.labels, successful)
        np.add.at(self.label_steps["epoch_failure_steps"], self.labels, failed)

    def _per_slot(self, values: npt.ArrayLike, name: str) -> Floats:
        array = np.asarray(values, dtype=np.float64)
        num_slots = len(self.slots)
        if array.shape not in ((), (num_slots,)) or not np.isfinite(array).all():
            raise RecordError(
                f"{name} must be {num_slots} finite numbers, one per slot; got {array!r}. "
                "Give sums over the episodes of each slot."
            )
        return np.broadcast_to(array, num_slots)

    def end_epoch(self) -> None:
        """Set the counters of this epoch back to 0, in place."""
        self.slots["num_epoch_samples"] = 0
        for name in ("num_epoch_samples", "epoch_successes", "num_epoch_judged"):
            self.by_label[name] = 0
        self.label_steps[:] = np.zeros((), LabelSteps.dtype)

    # Saving and resuming.

    def snapshot(self) -> Snapshot:
        """Return what was counted; a curriculum's own snapshot does not have it."""
        past = [(*key, label) for key, label in self._past.items()]
        arrays = copy_arrays(self._saved_arrays())
        arrays["past"] = np.array(past, dtype=np.int64).reshape(-1, 3)
        return Snapshot({"num_unlabelled": self.num_unlabelled}, arrays)

    def _saved_arrays(self) -> list[SavedArray]:
        return [
            SavedArray("task_ids", self._task_ids, (Part.count("task"),)),
            SavedArray("generations", self._generations, (Part.count("generation"),)),
            SavedArray("slots", self.slots, TaskTally.parts()),
            SavedArray("by_label", self.by_label, LabelTally.parts()),
            SavedArray("label_steps", self.label_steps, LabelSteps.parts()),
        ]

    def restore(self, snapshot: Snapshot) -> None:
        """Continue counting where a snapshot was made, in place; restore the curriculum first.

        Tasks that are not in their slots any more are counted from 0.

        Raises:
            SnapshotError: The snapshot is damaged or of other tasks. Then nothing has changed.
        """
        require_snapshot(snapshot)
        highest = np.array([len(self.slots) - 1, MAX_COUNT, len(self.by_label) - 1])
        past = SavedArray(
            "past",
            np.zeros((0, 3), dtype=np.int64),
            (Part("slot, generation or label", ..., 0, highest),),
            max_length=MAX_PAST,
        ).read(snapshot.arrays, snapshot.place)
        num_unlabelled = read_count(
            snapshot.state.get("num_unlabelled"), f"num_unlabelled of {snapshot.place}"
        )
        # Snapshots of 0.2.0 and before have no steps per label.
        fresh = {"label_steps": np.zeros_like(self.label_steps)}
        restore_arrays(self._saved_arrays(), {**fresh, **snapshot.arrays}, snapshot.place)
        self._past = {(slot, generation): label for slot, generation, label in past.tolist()}
        self._counted["num_unlabelled"] = num_unlabelled
        self._synchronise()
