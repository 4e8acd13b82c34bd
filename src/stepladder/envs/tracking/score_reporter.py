"""From advantages of steps to scores of episodes: what a trainer with values reports.

Beside `tracker`, which knows for every row of a vector env which draw it plays. A trainer computes
advantages for a rollout, an array of steps and envs in which episodes begin and end anywhere.
`ScoreReporter` notes at every step of the vector env which episodes end, adds the advantages up per
episode, and gives the curriculum one score for each that has ended. `training` uses it for PPO,
`sb3_callback` for Stable-Baselines3; a loop of your own makes one and calls `report`.

An episode that spans several rollouts is scored once, when it ends, over all of its steps; the
advantages of earlier steps are then those of the policy that played them.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode

from stepladder.arrays import Flags, Floats, Words
from stepladder.compiled import compiled
from stepladder.curricula.base import Curriculum
from stepladder.curricula.trainer_scores import TrainerScored
from stepladder.envs.tracking.tracked import Tracked
from stepladder.errors import ConfigError, RecordError, SnapshotError
from stepladder.plans.record import UNBUILDABLE, RecordArray
from stepladder.records import Count, Fields, Records
from stepladder.saving.saved_array import MAX_COUNT, Part, SavedArray, copy_arrays
from stepladder.saving.saved_fields import read_count
from stepladder.saving.snapshot import Snapshot

GOES_ON, ABORTED, NOT_PLAYING = -1, -2, -3
"""What a step is that ends no episode with a record: in the middle of one, the last of one that no
record tells of, or a step that only resets the env."""


class PlayedPart(Fields):
    """The steps so far of the episode that an env plays, as far as their advantages are known."""

    num_steps: Count
    absolute: float
    """Sum of absolute advantages."""
    positive: float
    """Sum of advantages above 0."""


class EpisodeScore(Fields):
    """What is known of an episode that has ended."""

    slot: int
    generation: int
    num_steps: int
    value_loss: float
    positive_value_loss: float


class NotedSteps(NamedTuple):
    """Steps whose advantages are not known yet; all arrays have shape ``(num_steps, num_envs)``."""

    slots: Words
    """The slot whose episode ends with this step, or what else the step is."""
    generations: Words
    cuts: Flags
    """Whether the episode before this step was left without an end, by a reset."""


@compiled
def add_steps(
    parts: Records[PlayedPart],
    slots: Words,
    generations: Words,
    cuts: Flags,
    absolute: Floats,
    positive: Floats,
    scores: Records[EpisodeScore],
) -> int:
    """Add the advantages of a rollout to the episodes; write the scores of those that end.

    The absolute values of the advantages, and what of them is above 0, have one entry per step and
    env.

    Returns:
        How many scores were written, in the order of steps, then envs.
    """
    num_scores = 0
    for step in range(slots.shape[0]):
        for env_index in range(slots.shape[1]):
            part, slot = parts[env_index], slots[step, env_index]
            if cuts[step, env_index]:
                part.num_steps = 0
                part.absolute = part.positive = 0.0
            if slot == NOT_PLAYING:
                continue
            part.num_steps += 1
            part.absolute += absolute[step, env_index]
            part.positive += positive[step, env_index]
            if slot == GOES_ON:
                continue
            if slot >= 0:
                score = scores[num_scores]
                score.slot = slot
                score.generation = generations[step, env_index]
                score.num_steps = part.num_steps
                score.value_loss = part.absolute / part.num_steps
                score.positive_value_loss = part.positive / part.num_steps
                num_scores += 1
            part.num_steps = 0
            part.absolute = part.positive = 0.0
    return num_scores


class ScoreReporter:
    """Gives a curriculum the scores of episodes, made of the advantages of their steps.

    From then on the vector env notes every step by itself. Attach it before the first step, and
    before a snapshot is restored; one vector env has at most one.

    Args:
        envs: A vector env with a curriculum: what `make_vec` returns, what `as_vec_env` makes of
            it, or `CurriculumVecEnvWrapper`.

    Raises:
        ConfigError: The vector env has no curriculum, no method of the curriculum wants scores, or
            another reporter is attached.
    """

    def __init__(self, envs: Any):
        tracked = tracked_envs(envs)
        tracker = tracked.tracker
        self.curriculum: Curriculum = tracker.curriculum
        require_wanted(self.curriculum)
        if tracker.reporter is not None:
            raise ConfigError(
                "this vector env has a ScoreReporter already, and two would score each episode "
                "twice. Use the first one."
            )
        batches = getattr(tracked, "batches", ())
        if len(batches) > 1:
            raise ConfigError(
                f"scores need steps of all envs at once, and these are in {len(batches)} "
                "batches. Make the vector env with num_batches=1."
            )
        num_envs: int = tracker.num_envs
        # Stable-Baselines3 has no such entry, and resets inside the step.
        mode = getattr(tracked, "metadata", {}).get("autoreset_mode", AutoresetMode.SAME_STEP)
        self._resets_in_a_step = mode is AutoresetMode.NEXT_STEP
        self._parts = PlayedPart.zeros(num_envs)
        self._noted: list[NotedSteps] = []
        self._ended: Words = np.full((2, num_envs), -1, dtype=np.int64)
        """Slot and generation of the episode whose record has come since the last step, by env."""
        self._has_ended: Flags = np.zeros(num_envs, dtype=np.bool_)
        self._is_cut: Flags = np.zeros(num_envs, dtype=np.bool_)
        self.num_scored = 0
        """Episodes that were scored so far."""
        self.num_aborted = 0
        """Episodes that ended without a record, because a worker died or a wrapper cut them off."""
        self.curriculum.add_listener(self._take_records)
        tracker.reporter = self

    @property
    def num_steps(self) -> int:
        """Vector steps whose advantages are to be reported next."""
        return len(self._noted)

    # Called by the tracker.

    def _take_records(self, records: RecordArray) -> None:
        """Note which episode each env has just ended; the same batch again changes nothing."""
        own = records[(records["env_index"] >= 0) & (records["outcome"] != UNBUILDABLE)]
        self._ended[0, own["env_index"]] = own["slot"]
        self._ended[1, own["env_index"]] = own["generation"]

    def note_step(self, ended: Flags) -> None:
        """Note a step of all envs; called by the vector env once its records were observed.

        Args:
            ended: Whether an episode has ended in it, by env.
        """
        has_record = self._ended[0] >= 0
        slots = np.where(ended, np.where(has_record, self._ended[0], ABORTED), GOES_ON)
        if self._resets_in_a_step:
            slots[self._has_ended] = NOT_PLAYING
        # A record without an end that was seen: a step was interrupted. Its episode is over.
        cuts = self._is_cut | (has_record & ~ended)
        self._noted.append(NotedSteps(slots, self._ended[1].copy(), cuts))
        self._has_ended[:] = ended
        self._is_cut[:] = False
        self._ended[:] = -1

    def note_reset(self, rows: Flags | None = None) -> None:
        """Note that envs were reset, by default all: what they were playing gets no score."""
        chosen = slice(None) if rows is None else np.asarray(rows, dtype=np.bool_)
        self._is_cut[chosen] = True
        self._has_ended[chosen] = False
        self._ended[:, chosen] = -1

    # Called by the trainer.

    def report(self, advantages: npt.ArrayLike, took_part: npt.ArrayLike | None = None) -> int:
        """Give the curriculum the scores of all episodes that ended in a rollout.

        Args:
            advantages: Of every step since the last report, shape ``(num_steps, num_envs)``, not
                normalised. Those of steps that only reset an env (next-step autoreset) are left
                out, whatever they are. Of envs with several agents, shape ``(num_steps, num_envs,
                num_agents)``: a step then counts with the mean over the agents that took part.
            took_part: Which agents took part in each step, of the same shape; by default all.

        Returns:
            How many episodes were scored.

        Raises:
            RecordError: The shape is another one, or an advantage is not finite. Nothing was taken.
        """
        steps = self._stacked()
        given = np.ascontiguousarray(advantages, dtype=np.float64)
        if given.ndim == 3:
            return self._report_means(steps, given, took_part)
        return self._report(steps, given, np.abs(given), np.maximum(given, 0.0))

    def _report_means(
        self, steps: NotedSteps, given: npt.NDArray[np.float64], took_part: Any
    ) -> int:
        """Report the means over the agents that took part."""
        mask = np.ones_like(given) if took_part is None else np.asarray(took_part, dtype=float)
        if mask.shape != given.shape:
            raise RecordError(
                f"took_part has shape {list(mask.shape)}; expected {list(given.shape)}, as the "
                "advantages."
            )
        # Those of agents that are not there may be anything, also not finite.
        used = np.where(mask > 0.0, given, 0.0)
        count = np.maximum(mask.sum(axis=2), 1.0)
        parts = (used, np.abs(used), np.maximum(used, 0.0))
        return self._report(steps, *(part.sum(axis=2) / count for part in parts))

    def _report(
        self, steps: NotedSteps, given: npt.NDArray[Any], absolute: Any, positive: Any
    ) -> int:
        if given.shape != steps.slots.shape:
            raise RecordError(
                f"advantages have shape {list(given.shape)}; expected {list(steps.slots.shape)}: "
                "the steps since the last report, and the envs. Report every rollout, and call "
                "drop_steps() for one that is not used."
            )
        bad = np.argwhere(~np.isfinite(given) & (steps.slots != NOT_PLAYING))
        if len(bad):
            step, env_index = bad[0].tolist()
            raise RecordError(
                f"the advantage of step {step} of env {env_index} is {given[step, env_index]}; "
                "expected a finite number. Nothing was taken; correct it and report again."
            )
        scores = EpisodeScore.zeros(int(np.count_nonzero(steps.slots >= 0)))
        add_steps(self._parts, *steps, absolute, positive, scores)
        self.num_aborted += int(np.count_nonzero(steps.slots == ABORTED))
        self.num_scored += len(scores)
        self._noted.clear()
        method = self.curriculum.in_force()
        if len(scores) and isinstance(method, TrainerScored) and method.config.trainer_score:
            wanted = scores[method.config.trainer_score]
            method.report_scores(scores["slot"].copy(), scores["generation"].copy(), wanted.copy())
        return len(scores)

    def drop_steps(self) -> None:
        """Forget the steps since the last report: their rollout is not used.

        Episodes that ended in them get no score; those that go on are scored without these steps.
        """
        for step in self._noted:
            over = step.cuts | (step.slots >= 0) | (step.slots == ABORTED)
            self._parts[np.flatnonzero(over)] = np.zeros(1, PlayedPart.dtype)
        self._noted.clear()

    def _stacked(self) -> NotedSteps:
        """Return all steps since the last report, in arrays of steps and envs."""
        shape = (len(self._noted), len(self._has_ended))
        return NotedSteps(
            np.array([step.slots for step in self._noted], dtype=np.int64).reshape(shape),
            np.array([step.generations for step in self._noted], dtype=np.int64).reshape(shape),
            np.array([step.cuts for step in self._noted], dtype=np.bool_).reshape(shape),
        )

    # Saving.

    def snapshot(self) -> Snapshot:
        """Return what is known of unfinished episodes and unreported steps."""
        counts = {"num_scored": self.num_scored, "num_aborted": self.num_aborted}
        return Snapshot(counts, copy_arrays(self._saved_arrays()))

    def read(self, snapshot: Snapshot, *, in_flight: bool) -> Callable[[], None]:
        """Check what `snapshot` returned; the tracker calls it.

        Args:
            snapshot: The saved state.
            in_flight: Whether the envs go on in the middle of their episodes. Otherwise these are
                played again, and neither they nor the unreported steps are kept.

        Returns:
            A function that continues there.

        Raises:
            SnapshotError: It is damaged. Nothing changes.
        """
        counts = [
            read_count(snapshot.state.get(name), f"{name} of {snapshot.place}")
            for name in ("num_scored", "num_aborted")
        ]
        read = [one.read(snapshot.arrays, snapshot.place) for one in self._saved_arrays()]
        lengths = [len(rows) for rows in read[-3:]]
        if len(set(lengths)) > 1:
            raise SnapshotError(
                f"slots, generations and cuts of {snapshot.place} have {lengths} rows; expected as "
                "many of each. Use an older one."
            )

        def give_back() -> None:
            self.num_scored, self.num_aborted = counts
            self.start_anew()
            if in_flight:
                self._parts[:], self._has_ended[:], self._is_cut[:] = read[:3]
                self._noted += [
                    NotedSteps(*(part.copy() for part in row))
                    for row in zip(*read[-3:], strict=True)
                ]

        return give_back

    def start_anew(self) -> None:
        """Forget all steps; every env begins an episode."""
        self._noted.clear()
        self._parts[:] = np.zeros(1, PlayedPart.dtype)
        self.note_reset()

    def _saved_arrays(self) -> list[SavedArray]:
        steps, most = self._stacked(), MAX_COUNT
        slots = Part("slot", ..., NOT_PLAYING, self.curriculum.pool.num_slots - 1)
        generations = Part("generation", ..., -1, MAX_COUNT)
        return [
            SavedArray("parts", np.asarray(self._parts), PlayedPart.parts()),
            SavedArray("has_ended", self._has_ended),
            SavedArray("is_cut", self._is_cut),
            SavedArray("slots", steps.slots, (slots,), max_length=most),
            SavedArray("generations", steps.generations, (generations,), max_length=most),
            SavedArray("cuts", steps.cuts, max_length=most),
        ]


def wanted_scores(curriculum: Curriculum) -> list[str]:
    """Return the scores that the methods of a curriculum want from a trainer; usually none."""
    found = (method.config.trainer_score for _, method in curriculum.all_methods())
    return sorted({score for score in found if score})


def require_wanted(curriculum: Curriculum) -> None:
    """Raise unless a method of a curriculum wants scores from a trainer."""
    if not wanted_scores(curriculum):
        raise ConfigError(
            f"{type(curriculum).__name__} wants no scores from a trainer. Leave the reporter out, "
            "or use LevelReplay(scored_by='value_loss') or AdvantageBandit."
        )


def tracked_envs(envs: Any, what: str = "scores need") -> Any:
    """Return the vector env that has the tracker, found through its wrappers.

    Args:
        envs: The outermost wrapper.
        what: Who needs it, for the message.

    Raises:
        ConfigError: It has no curriculum.
    """
    found = envs
    while not isinstance(found, Tracked):
        found = getattr(found, "venv", None) or getattr(found, "env", None)
        if found is None:
            raise ConfigError(
                f"{what} a vector env with a curriculum; got a {type(envs).__name__}. Make it "
                "with make_vec(..., curriculum=curriculum)."
            )
    return found
