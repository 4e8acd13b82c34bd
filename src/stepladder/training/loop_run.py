"""A run around the user's own loop: reports, checkpoints, and a way to go on after a kill.

For training code that steps envs itself, also that of other libraries (`envs.sb3_callback`). It
does for such a loop what `session` does for `train`. The loop owns its agent; whatever it wants to
find again, it writes into the folder of each checkpoint.
"""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self, cast

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode

from stepladder.closing import Closing
from stepladder.configs.checks import require_integer
from stepladder.curricula.base import Curriculum
from stepladder.envs.tracking.score_reporter import tracked_envs
from stepladder.envs.vector import is_batched
from stepladder.errors import ChannelError, ConfigError, StepladderError
from stepladder.files import sync
from stepladder.runs import RunWriter
from stepladder.runs.checkpoint_folders import save_with_folder
from stepladder.runs.interrupting import InterruptGuard
from stepladder.runs.reporter import EpochReporter
from stepladder.saving.saved_fields import read_count, read_numbers
from stepladder.saving.snapshot import Snapshot
from stepladder.stats import accumulate_rollout_stats, process_training_stats
from stepladder.training.config import CheckpointConfig
from stepladder.training.episodes import Episodes

LOOP_KIND = "loop"
"""The kind of such a run."""

LOOP_PART = "loop"
"""The part of a snapshot that is not the envs'."""

OF_OTHERS = ("TimeLimit.truncated", "terminal_observation")
"""Entries of infos that Stable-Baselines3 adds for itself."""

Save = Callable[[Path], object]
"""Writes what a loop wants to find again into a folder."""


class LoopRun(Closing):
    """A run of the user's own loop; `stepladder.run` makes one.

    Use it as a context manager: at its end, everything that was counted is logged, the last table
    of all tasks and a last checkpoint are written, and the run is closed. After an exception the
    run has all that was counted, and goes on from the checkpoint before. The first Ctrl-C
    (or SIGTERM) waits for the next `report`, which saves before it raises `KeyboardInterrupt`.

    Args:
        run: The run to write.
        envs: The vector env, with a curriculum; or the curriculum, if there is no vector env.
        save: Writes the agent.
        epoch_steps: Env steps between two lines of metrics, at least.
        checkpoints: How often everything is saved.
    """

    def __init__(
        self,
        run: RunWriter,
        envs: Any,
        *,
        save: Save | None,
        epoch_steps: int,
        checkpoints: CheckpointConfig,
    ):
        self._run, self._envs = run, envs
        self._writers: list[Save] = [] if save is None else [save]
        self._tracked: Any = None if isinstance(envs, Curriculum) else tracked_of(envs)
        self.curriculum: Curriculum = curriculum_of(envs)
        """What is practised."""
        self.num_steps = 0
        """Env steps so far, those before a resume included."""
        self.saved: Path | None = None
        """The folder of the checkpoint that a resumed run goes on from, with what `save` wrote."""
        self._epoch_steps, self._checkpoints = epoch_steps, checkpoints
        self._reporter = EpochReporter(self.curriculum, run)
        self._episodes = Episodes()
        self.curriculum.add_listener(self._episodes.take)
        self._guard = InterruptGuard(also_when_terminated=True)
        # Games stepped as a batch tell of their episodes through the curriculum alone, and infos
        # that are not read are not made.
        self._reads_infos = not is_batched(cast("Any", getattr(envs, "unwrapped", envs)))
        mode = (getattr(self._tracked, "metadata", None) or {}).get("autoreset_mode")
        self._resets_in_a_step = mode is AutoresetMode.NEXT_STEP
        self._had_ended: npt.NDArray[np.bool_] | None = None
        self._stats: dict[str, list[float]] = {}
        self._losses: dict[str, list[Any]] = {}
        self._metrics: dict[str, float] = {}
        self._began = self._epoch_began = time.monotonic()
        self._earlier_s = 0.0
        self._saved_at_step, self._saved_at_s = -1, self._began

    @property
    def folder(self) -> Path:
        """Where everything is."""
        return self._run.folder

    @property
    def num_episodes(self) -> int:
        """Episodes that have ended so far, those before a resume included."""
        return self._episodes.num_ended

    # Playing.

    def reset(self, **arguments: Any) -> Any:
        """Reset the envs, with the arguments of their own `reset`; return what it returns."""
        result = self._vector_envs().reset(**arguments)
        options = arguments.get("options")
        rows = options.get("reset_mask") if isinstance(options, Mapping) else None
        if rows is None or self._had_ended is None:
            self._had_ended = None
        else:
            self._had_ended = self._had_ended & ~np.asarray(rows, dtype=np.bool_)
        return result

    def step(self, actions: Any) -> Any:
        """Step the envs, and count it; return what their own `step` returns."""
        result = self._vector_envs().step(actions)
        # Stable-Baselines3 has one array for both endings.
        ended = np.asarray(result[2]) if len(result) == 4 else result[2] | result[3]
        num_steps = len(ended)
        if self._resets_in_a_step and self._had_ended is not None:
            # The step after an ending only resets.
            num_steps -= int(np.count_nonzero(self._had_ended))
        self._had_ended = ended
        self.note(result[-1], num_steps)
        return result

    def note(self, infos: Any, num_steps: int) -> None:
        """Count steps that were made without `step`.

        Args:
            infos: What the envs said in them: a list of dicts, or the dict of a vector env.
            num_steps: Env steps of all envs together.
        """
        require_integer("num_steps", num_steps, 0)
        self.num_steps += int(num_steps)
        if self._reads_infos:
            accumulate_rollout_stats(infos, self._stats)

    def _vector_envs(self) -> Any:
        if self._tracked is None:
            raise ConfigError(
                "this run has a curriculum and no vector env to step. Count steps with "
                "note(infos, num_steps), or give it the vector env."
            )
        return self._envs

    # Reports.

    def report(
        self,
        losses: Mapping[str, Any] | None = None,
        metrics: Mapping[str, float] | None = None,
    ) -> None:
        """Report an update of the agent: the place where the loop can be continued from.

        If enough steps were made, the epoch is logged; if a checkpoint is due, all is saved.

        Args:
            losses: A number by name, logged as ``losses/NAME``; of several updates in an epoch, the
                mean.
            metrics: Further numbers by the names that they are logged under; the latest counts.

        Raises:
            KeyboardInterrupt: Ctrl-C was pressed since the last report. Everything is saved.
        """
        for name, value in (losses or {}).items():
            self._losses.setdefault(name, []).append(value)
        self._metrics |= metrics or {}
        if self._guard.was_interrupted:
            self.save()
            raise KeyboardInterrupt
        if self._is_checkpoint_due():
            self.save()
        elif self.num_steps - self._reporter.last_step >= self._epoch_steps:
            self._end_epoch()

    def event(self, kind: str, text: str, data: Mapping[str, Any] | None = None) -> None:
        """Keep something that happened: what kind of thing, in words, and in numbers."""
        self._run.event(self.num_steps, kind, text, data)

    def _end_epoch(self) -> None:
        """Log what has happened since the last epoch."""
        num_steps, now = self.num_steps - self._reporter.last_step, time.monotonic()
        if num_steps == 0:
            # An update after the last step: it belongs to the epoch that was logged there.
            names = self._reporter.names
            losses = process_training_stats({}, self._losses, names=names).losses_stats
            late = {f"losses/{name}": value for name, value in losses.items()} | self._metrics
            self._run.log(self.num_steps, late)
            self._losses, self._metrics = {}, {}
            return
        # What is known of every episode, whatever the envs say.
        stats = {**self._stats, **self._episodes.stats()}
        for name in OF_OTHERS:
            stats.pop(name, None)
        self._reporter.end_epoch(
            self.num_steps,
            stats,
            losses=self._losses,
            total_time_s=self._elapsed_s,
            steps_per_second=num_steps / max(1e-9, now - self._epoch_began),
        )
        # Under the very names that they were given.
        self._run.log(self.num_steps, self._metrics)
        self._stats, self._losses, self._metrics = {}, {}, {}
        if self._reporter.num_epochs % self._reporter.table_epochs == 0:
            # Beside the table of all tasks: `explain` shows both.
            self._reporter.keep_explanation()
        self._epoch_began = time.monotonic()

    @property
    def _elapsed_s(self) -> float:
        return self._earlier_s + time.monotonic() - self._began

    @property
    def _is_reported(self) -> bool:
        return self.num_steps == self._reporter.last_step and not (self._losses or self._metrics)

    # Checkpoints.

    def _is_checkpoint_due(self) -> bool:
        steps, config = self.num_steps - self._saved_at_step, self._checkpoints
        if self._saved_at_step < 0 or time.monotonic() - self._saved_at_s >= config.every_s:
            # The first one soon: until then there is nothing to continue from.
            return steps > 0
        return config.every_steps is not None and steps >= config.every_steps

    def also_save(self, write: Save) -> None:
        """Write something else into the folder of every checkpoint from now on, too."""
        if write not in self._writers:
            self._writers.append(write)

    def save(self) -> Path:
        """Save everything now; return the folder of the checkpoint, with what the loop wrote.

        Raises:
            ChannelError: The envs were closed before.
            RunError: It cannot be written; the checkpoints before stay.
        """
        if not self._is_reported:
            self._end_epoch()
        self._reporter.keep_explanation()
        if self._tracked is not None and self._tracked.tracker.host.is_closed:
            raise ChannelError(
                "the envs were closed before their run, so its last checkpoint cannot be made. "
                "Close them after the run: behind its with statement."
            )
        envs = self.curriculum if self._tracked is None else self._tracked
        base: Snapshot = envs.snapshot()
        counts = {"num_steps": self.num_steps, "elapsed_s": [self._elapsed_s]}
        own = Snapshot.of_parts(
            counts, reporter=self._reporter.snapshot(), episodes=self._episodes.snapshot()
        )
        nested = Snapshot.of_parts(base.state, **{LOOP_PART: own})
        snapshot = Snapshot(nested.state, {**base.arrays, **nested.arrays})
        keep = self._checkpoints.keep
        path = save_with_folder(self._run, self.num_steps, snapshot, self._write, keep=keep)
        self._saved_at_step, self._saved_at_s = self.num_steps, time.monotonic()
        # Saving is not training.
        self._epoch_began = time.monotonic()
        return path

    def _write(self, folder: Path) -> None:
        """Let the loop write its own files; wait until they are on the disk."""
        folder.mkdir()
        for write in self._writers:
            write(folder)
        for path in (*folder.rglob("*"), folder):
            if not path.is_symlink():
                sync(path)

    def restore(self, snapshot: Snapshot, folder: Path) -> None:
        """Go on where a checkpoint was made; the envs are restored before.

        Args:
            snapshot: Of the checkpoint.
            folder: Where the loop's own files are.

        Raises:
            SnapshotError: It is damaged.
        """
        own = snapshot.part(LOOP_PART)
        num_steps = read_count(own.state.get("num_steps"), f"num_steps of {own.place}")
        elapsed = read_numbers(own.state.get("elapsed_s"), f"elapsed_s of {own.place}")
        self._reporter.restore(own.part("reporter"))
        self._episodes.restore(own.part("episodes"))
        self.num_steps = self._saved_at_step = num_steps
        self._earlier_s = sum(elapsed)
        self.saved = folder

    # The end.

    def close(self, status: str = "finished") -> None:
        """Log what is left, save everything, and close the run; nothing happens the second time."""
        if self._run.is_closed:
            return
        if self.num_steps != self._saved_at_step or not self._is_reported:
            self.save()
        self._end(status)

    def _end(self, status: str) -> None:
        self._reporter.keep_explanation()
        self.detach()
        self._run.close(status)

    def detach(self) -> None:
        """Listen to the curriculum no longer; the run stays open."""
        self.curriculum.remove_listener(self._episodes.take)
        self._reporter.meter.close()

    def __enter__(self) -> Self:
        self._guard.__enter__()
        return self

    def _end_block(self, error: BaseException | None) -> None:
        self._guard.__exit__()
        if error is None:
            with self._run:
                self.close()
            if self._guard.was_interrupted:
                # Since the last report: whatever follows the loop is not wanted.
                raise KeyboardInterrupt
            return
        if self._run.is_closed:
            return
        try:
            if not self._is_reported:
                self._end_epoch()
            if isinstance(error, KeyboardInterrupt):
                self._end("interrupted")
                return
            self._reporter.keep_explanation()
        except StepladderError as problem:
            # The first error is the one that the caller has to see.
            error.add_note(f"Nor could the run keep what was counted: {problem}")
        self.detach()
        self._run.fail(error)


def curriculum_of(envs: Any) -> Curriculum:
    """Return the curriculum of a vector env, or the one that is given itself."""
    return envs if isinstance(envs, Curriculum) else tracked_of(envs).curriculum


def tracked_of(envs: Any) -> Any:
    """Return the vector env with the tracker, found through its wrappers."""
    return tracked_envs(envs, "a run needs a curriculum or")
