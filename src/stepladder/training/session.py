"""A training from its first step to its last: reports, evaluations, checkpoints, Ctrl-C.

Between `starting`, which makes or reopens a run, and `loop`, which does the steps. An epoch is so
many env steps; at its end metrics are logged, and evaluations and checkpoints made if they are due.
"""

import shlex
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from stepladder.errors import DivergenceError
from stepladder.runs import RunReader, RunWriter
from stepladder.runs.checkpoint_choice import names_by_step
from stepladder.runs.interrupting import InterruptGuard
from stepladder.runs.reporter import EpochReporter
from stepladder.saving.snapshot import Snapshot
from stepladder.training import checkpoints
from stepladder.training.account import checked_account
from stepladder.training.best import Best, better
from stepladder.training.checkpoints import TrainingCheckpoint
from stepladder.training.config import TrainingConfig
from stepladder.training.evaluation import Evaluation
from stepladder.training.examiner import Examiner, checked_baseline
from stepladder.training.loop import Clockwork, Trainer
from stepladder.training.policies import TrainedPolicy
from stepladder.training.results import OnEpoch, Progress, TrainingResult


class Session:
    """A training from its start, or from where it is resumed, to its end.

    Args:
        config: The settings.
        trainer: Agent, envs and curriculum.

    Raises:
        ConfigError: An evaluation is asked for that cannot be played.
        SnapshotError: One of its opponents cannot be.
    """

    def __init__(self, config: TrainingConfig, trainer: Trainer):
        self.config, self.trainer = config, trainer
        self._examiner = Examiner(config, trainer.agent, trainer.device)
        self._epoch_steps = config.steps_per_epoch
        self.run: RunWriter | None = None
        self.reporter = EpochReporter(trainer.curriculum)
        self.evaluations: list[dict[str, Any]] = []
        self.best: Best | None = None
        """The best evaluation so far; its checkpoint is kept."""
        self._evaluated_at = 0
        self._saved_at_step, self._saved_at_s = 0, time.monotonic()
        self._saved_as: str | None = None
        self._earlier_s, self._began = 0.0, time.monotonic()
        self._epoch_began = self._began
        self._clock_before = Clockwork()
        self._steps_before = 0
        self._reported_at = 0

    def keep_in(self, run: RunWriter) -> None:
        """Keep everything in a run from now on."""
        self.run = self.reporter.run = run
        if self.best is None:
            return
        reader = RunReader(run.folder)
        name = names_by_step(reader).get(self.best.step)
        if name is None:
            # It was removed for a better one, which the run has gone back on.
            self.best = None
        elif name != reader.best_checkpoint():
            run.mark_best(name)

    def play(self, on_epoch: OnEpoch | None = None) -> bool:
        """Train until the end; return whether it was stopped before."""
        trainer, was_stopped = self.trainer, False
        # Around everything: Ctrl-C in the last evaluation must not lose what came before.
        with InterruptGuard(also_when_terminated=True) as guard:
            while not was_stopped:
                # A session may have ended between a last step and its report.
                if self._is_over() and trainer.num_steps == self._reported_at:
                    break
                boundary = (self._reported_at // self._epoch_steps + 1) * self._epoch_steps
                while trainer.num_steps < boundary and not (
                    self._is_over() or guard.was_interrupted
                ):
                    trainer.advance()
                if guard.was_interrupted:
                    was_stopped = True
                    break
                was_stopped = self._end_epoch(on_epoch) or guard.was_interrupted
            if not was_stopped and not self._is_examined():
                self._evaluate(in_full=True)
            self.save()
            if not was_stopped and trainer.league is not None:
                # Last: an archive that cannot be reached must not cost what was learnt.
                trainer.league.enter_archive(trainer.agent, trainer.num_steps)
        return was_stopped

    @property
    def _budget_left(self) -> int:
        """Env steps of training until the end; evaluations do not count."""
        return self.config.total_steps - self.trainer.num_steps

    @property
    def has_ended(self) -> bool:
        """Whether nothing is left to do: the budget is used, reported and evaluated."""
        return (
            self._is_over() and self.trainer.num_steps == self._reported_at and self._is_examined()
        )

    def _is_over(self) -> bool:
        most = self.config.total_episodes
        if most is not None and self.trainer.episodes.num_ended >= most:
            return True
        return self._budget_left <= 0

    def _end_epoch(self, on_epoch: OnEpoch | None) -> bool:
        """Report an epoch, and do what is due; return whether to stop."""
        self.trainer.agent.check_finite()
        progress = self._report()
        if self._is_evaluation_due():
            evaluation = self._evaluate()
            progress = replace(
                progress,
                evaluation=evaluation,
                baseline=self._examiner.baseline,
                evaluation_steps=self.evaluation_steps,
            )
        is_asked_to_stop = on_epoch is not None and on_epoch(progress) is True
        if self._is_checkpoint_due() and not is_asked_to_stop:
            self.save()
        # Evaluations and checkpoints are not training; the next epoch begins after them.
        self._epoch_began = time.monotonic()
        return is_asked_to_stop

    # Reports.

    def _report(self) -> Progress:
        trainer, curriculum, clock = self.trainer, self.trainer.curriculum, self.trainer.seconds
        now = time.monotonic()
        rate = (trainer.num_steps - self._steps_before) / max(1e-9, now - self._epoch_began)
        spent = clock.since(self._clock_before)
        stats = trainer.episodes.stats()
        successes, returns = stats.get("curriculum_success", []), stats.get("episode/r", [])
        logged = self.reporter.end_epoch(
            trainer.num_steps,
            stats,
            losses=trainer.agent.take_losses(),
            experience=trainer.agent.memory_stats(),
            extra=self._extra(spent),
            total_time_s=self.elapsed_s,
            steps_per_second=rate,
        )
        self._steps_before = self._reported_at = trainer.num_steps
        self._clock_before = replace(clock)
        return Progress(
            num_steps=trainer.num_steps,
            total_steps=self.config.total_steps,
            evaluation_steps=self.evaluation_steps,
            num_episodes=trainer.episodes.num_ended,
            num_updates=trainer.num_updates,
            steps_per_second=rate,
            seconds=spent,
            elapsed_s=self.elapsed_s,
            left_s=self._left_s(rate, len(returns) / max(1e-9, now - self._epoch_began)),
            stage=curriculum.legend().current_stage(curriculum.plan.dials),
            phase=trainer.phase,
            success=sum(successes) / len(successes) if successes else None,
            mean_return=sum(returns) / len(returns) if returns else None,
            evaluation=None,
            baseline=self._examiner.baseline,
            news=tuple(event.text for event in self.reporter.last_events),
            logged=logged,
        )

    def _left_s(self, steps_per_second: float, episodes_per_second: float) -> float:
        """Return the seconds until the end of the budget or of the episodes, the sooner one."""
        left = self._budget_left / max(1e-9, steps_per_second)
        most = self.config.total_episodes
        if most is not None and episodes_per_second > 0:
            left = min(left, (most - self.trainer.episodes.num_ended) / episodes_per_second)
        return max(0.0, left)

    def _extra(self, spent: Clockwork) -> dict[str, float]:
        extra = {
            "throughput/env_seconds": spent.env,
            "throughput/act_seconds": spent.act,
            "throughput/learn_seconds": spent.learn,
            "throughput/updates": float(self.trainer.num_updates),
        }
        if self.trainer.league is not None:
            extra |= self.trainer.league.metrics()
        return extra

    @property
    def elapsed_s(self) -> float:
        """Seconds of training so far, earlier sessions included."""
        return self._earlier_s + time.monotonic() - self._began

    # Evaluations.

    @property
    def evaluation_steps(self) -> int:
        """Env steps of all evaluations so far."""
        return self._examiner.num_steps

    def _is_evaluation_due(self) -> bool:
        every = self.config.evaluation.every_steps
        # At the end, the evaluation in full comes instead.
        return (
            every is not None
            and self.trainer.num_steps - self._evaluated_at >= every
            and not self._is_over()
        )

    def _is_examined(self) -> bool:
        """Return whether the evaluation of the end has been made."""
        latest = self.evaluations[-1] if self.evaluations else {}
        return latest.get("step") == self.trainer.num_steps and bool(latest.get("beside"))

    def _evaluate(self, *, in_full: bool = False) -> Evaluation:
        """Let the agent play held-out games; they count nowhere else."""
        step, had_baseline = self.trainer.num_steps, self._examiner.baseline is not None
        result = self._examiner.examine(in_full=in_full)
        self._evaluated_at = step
        if self.evaluations and self.evaluations[-1]["step"] == step:
            # A training that was given an earlier end.
            self.evaluations.pop()
        self.evaluations.append({"step": step, **result.to_json()})
        self.best = better(self.best, step, result.judged)
        baseline = self._examiner.baseline
        if self.run is not None:
            logged = result.metrics() | {"evaluation/steps": self.evaluation_steps}
            if baseline is not None and not had_baseline:
                logged |= baseline.headlines()
                text = str(baseline).splitlines()[0]
                self.run.event(step, "baseline", text, baseline.to_json())
            self.run.log(step, logged)
            self.run.event(step, "evaluation", str(result).splitlines()[0], result.to_json())
        return result

    # Checkpoints.

    def _is_checkpoint_due(self) -> bool:
        config = self.config.checkpoints
        if self._saved_as is None:
            # The first one soon: until then there is nothing to watch or to resume.
            return True
        if self._is_best() and self._saved_at_step != self.trainer.num_steps:
            return True
        if time.monotonic() - self._saved_at_s >= config.every_s:
            return True
        return (
            config.every_steps is not None
            and self.trainer.num_steps - self._saved_at_step >= config.every_steps
        )

    def _is_best(self) -> bool:
        """Whether the agent is as it was in the best evaluation so far."""
        return self.best is not None and self.best.step == self.trainer.num_steps

    def save(self) -> Path | None:
        """Save everything; return where, or None if no run is kept."""
        if self.run is None:
            return None
        trainer = self.trainer
        envs, rest = trainer.snapshot()
        baseline = self._examiner.baseline
        own = Snapshot(
            {
                "evaluations": self.evaluations,
                "baseline": None if baseline is None else baseline.to_json(),
                "evaluation_steps": self.evaluation_steps,
                "evaluated_at": self._evaluated_at,
                "best": None if self.best is None else self.best.to_json(),
                "num_epochs": self.reporter.num_epochs,
                "reported_at": self._reported_at,
                "cursor": asdict(self.reporter.cursor),
                "names": self.reporter.names.state(),
                "elapsed_s": self.elapsed_s,
            }
        )
        parts = {"session": own, "trainer": rest, "meter": self.reporter.meter.snapshot()}
        path = checkpoints.save(
            self.run,
            TrainingCheckpoint(
                step=trainer.num_steps,
                agent=trainer.agent.state(),
                description=trainer.agent.description(),
                envs=envs,
                trainer=Snapshot.of_parts({}, **parts),
            ),
            curriculum=trainer.curriculum.snapshot(),
            keep=self.config.checkpoints.keep,
            is_best=self._is_best(),
        )
        self._saved_at_step, self._saved_at_s = trainer.num_steps, time.monotonic()
        self._saved_as = path.name
        return path

    def restore(self, checkpoint: TrainingCheckpoint) -> bool:
        """Continue where a checkpoint was made.

        Returns:
            Whether running games continue, rather than restart.

        Raises:
            SnapshotError: It does not fit.
        """
        parts = checkpoint.trainer
        own = parts.part("session").state
        cursor, best = checked_account(own)
        baseline = checked_baseline(own.get("baseline"))
        self.trainer.agent.restore(checkpoint.agent)
        goes_on = self.trainer.restore(checkpoint.envs, parts.part("trainer"))
        self.reporter.meter.restore(parts.part("meter"))
        self.evaluations = list(own["evaluations"])
        self._examiner.baseline, self._examiner.num_steps = baseline, own["evaluation_steps"]
        self._evaluated_at = own["evaluated_at"]
        self.best = best
        self._reported_at = self.reporter.last_step = own["reported_at"]
        self.reporter.num_epochs = own["num_epochs"]
        self.reporter.cursor = cursor
        self._earlier_s = float(own["elapsed_s"])
        # Checkpoints of 0.1.0 have none.
        if "names" in own:
            self.reporter.names.restore(own["names"])
        self._clock_before = replace(self.trainer.seconds)
        # The first epoch of a session is timed from here, also if the checkpoint was inside it.
        self._saved_at_step = self._steps_before = self.trainer.num_steps
        self._saved_as = checkpoint.name
        self._epoch_began = time.monotonic()
        return goes_on

    # The end.

    def end_diverged(self, error: DivergenceError) -> DivergenceError:
        """Log why a training diverged; return the error with the last good checkpoint added."""
        if self.run is None:
            return error
        left = "No checkpoint was saved before it."
        if self._saved_as is not None:
            folder = shlex.quote(str(self.run.folder))
            left = (
                f"The last good checkpoint, {self._saved_as}, is kept: begin another run with its "
                f"weights and other settings (--initial-weights {folder}). Resuming it would only "
                "come to the same update."
            )
        full = DivergenceError(f"{error} {left}")
        full.update = error.update
        self.run.event(
            self.trainer.num_steps,
            "diverged",
            str(full),
            {"update": error.update, "checkpoint": self._saved_as},
        )
        return full

    def result(self, was_stopped: bool) -> TrainingResult:
        """Return what is left behind."""
        episodes = self.trainer.episodes
        latest, folder = list(episodes.latest), None if self.run is None else self.run.folder
        nan = float("nan")
        return TrainingResult(
            run_folder=folder,
            run_name="" if folder is None else folder.name,
            final_reward=latest[-1] if latest else nan,
            mean_reward=sum(latest) / len(latest) if latest else nan,
            total_episodes=episodes.num_ended,
            total_steps=self.trainer.num_steps,
            total_gradient_steps=self.trainer.num_updates,
            evaluation_steps=self.evaluation_steps,
            evaluation_results=self.evaluations,
            seconds=self.elapsed_s,
            was_stopped=was_stopped,
            best_step=None if self.best is None else self.best.step,
            policy=self._policy(folder),
        )

    def _policy(self, folder: Path | None) -> TrainedPolicy:
        """Return what was learnt."""
        agent = self.trainer.agent
        return TrainedPolicy(
            checkpoints.SavedPolicy(
                description=agent.description(),
                weights=agent.weights(),
                checkpoint=self._saved_as,
                run_folder=folder,
            )
        )

    def close(self) -> None:
        """Close what was opened."""
        self.reporter.close()
        self.trainer.close()
