"""Which values a sweep tries, and where its trials are saved: an Optuna study in a journal file.

Between `space` and `trials`. All combinations are tried in order, or Optuna's TPE proposes values
in rounds. What a trial tries depends only on the settings and the results of earlier rounds, so a
sweep that was killed and resumed, or that runs on another number of cores, tries the same values.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import stepladder
from stepladder.errors import ConfigError, RunError
from stepladder.files import open_regular
from stepladder.runs.lock import RunLock
from stepladder.saving.snapshot import difference
from stepladder.sweeps.space import Dimension, SweepChoice, SweepParams, combinations, value_text

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

SCHEMA = 2
"""Version of the layout; another is refused."""

STUDY, JOURNAL, SWEEP_LOCK = "sweep", "study.log", "sweep.lock"

SEARCH_ROUND = 8
"""Trials that Optuna proposes at once, from the results of all earlier rounds."""

GRID_ROUND = 64
"""Trials of a grid that are begun at once."""


class SweepStudy:
    """An open study, locked against other processes.

    Args:
        folder: Where it is or will be.
        settings: What the sweep does, as plain JSON.
        dimensions: What is varied.
        seed: Seed of the proposals.

    Raises:
        ConfigError: Optuna is not installed.
        RunError: The folder holds something else or a sweep with other settings, or is in use.
    """

    def __init__(
        self,
        folder: Path | str,
        settings: Mapping[str, Any],
        dimensions: Sequence[Dimension],
        seed: int,
    ):
        self._optuna = optuna = import_optuna()
        self.folder = Path(folder)
        self._dimensions, self._seed = dimensions, seed
        _refuse_foreign(self.folder)
        with ExitStack() as undo, self._readable():
            self.folder.mkdir(parents=True, exist_ok=True)
            undo.callback(RunLock.take(self.folder / SWEEP_LOCK).release)
            _cut_off_half_a_line(self.folder / JOURNAL)
            journal = optuna.storages.journal.JournalFileBackend(
                os.fspath(self.folder / JOURNAL), lock_obj=_Held()
            )
            self._storage = optuna.storages.JournalStorage(journal)
            self._study = optuna.create_study(
                storage=self._storage, study_name=STUDY, load_if_exists=True
            )
            about = {"schema": SCHEMA, "version": stepladder.__version__, **settings}
            saved = self._study.user_attrs.get("settings")
            if saved is None:
                self._study.set_user_attr("settings", about)
            elif change := difference(saved, about):
                raise RunError(
                    f"{self.folder} holds a sweep with other settings: {change}. "
                    "Choose another folder, or give the settings it was begun with."
                )
            self.close = undo.pop_all().close

    def finished(self) -> "list[FrozenTrial]":
        """Return the trials that have a result, in the order of their numbers."""
        with self._readable():
            return [trial for trial in self._study.trials if trial.state.is_finished()]

    def rounds(self, num_trials: int | None) -> "Iterator[list[FrozenTrial]]":
        """Yield the trials that have no result yet, round by round.

        A round must be finished before the next one is asked for.

        Args:
            num_trials: Trials that Optuna proposes; None tries all combinations, the last field
                varying fastest.
        """
        make, states = self._optuna.trial.create_trial, self._optuna.trial.TrialState
        space = {entry.field: self._distribution(entry) for entry in self._dimensions}
        grid: list[SweepParams] = []
        if num_trials is None:
            choices = [entry for entry in self._dimensions if isinstance(entry, SweepChoice)]
            grid = combinations([SweepChoice(entry.field, _labels(entry)) for entry in choices])
        total = num_trials or len(grid)
        size = GRID_ROUND if grid else SEARCH_ROUND
        for first in range(0, total, size):
            with self._readable():
                # A search always proposes a whole round: if it is given more trials, it continues
                # as if they had been asked for at once.
                after = min(first + size, total) if grid else first + size
                for number in range(len(self._study.get_trials(deepcopy=False)), after):
                    values = grid[number] if grid else self._proposed(number, space)
                    trial = make(state=states.RUNNING, params=values, distributions=space)
                    self._study.add_trial(trial)
                unfinished = self._study.get_trials(states=(states.RUNNING,))
            yield [trial for trial in unfinished if trial.number < total]

    def params(self, trial: "FrozenTrial") -> SweepParams:
        """Return the values of a trial, with the types of their fields."""
        found: SweepParams = {}
        for dimension in self._dimensions:
            value = trial.params[dimension.field]
            if isinstance(dimension, SweepChoice):
                value = dimension.values[_labels(dimension).index(value)]
            found[dimension.field] = value
        return found

    def record(self, number: int, cost: float | None, result: Mapping[str, Any]) -> None:
        """Save the result of a trial; it is on disk when this returns.

        Args:
            number: The trial's number.
            cost: What the search minimises; None if the trial could not be played.
            result: What was measured, as plain JSON.
        """
        states, storage = self._optuna.trial.TrialState, self._storage
        with self._readable():
            study_id = storage.get_study_id_from_name(STUDY)
            trial_id = storage.get_trial_id_from_study_id_trial_number(study_id, number)
            storage.set_trial_user_attr(trial_id, "result", dict(result))
            self._study.tell(number, cost, states.FAIL if cost is None else states.COMPLETE)

    def _distribution(self, dimension: Dimension) -> Any:
        kinds = self._optuna.distributions
        if isinstance(dimension, SweepChoice):
            return kinds.CategoricalDistribution(_labels(dimension))
        if dimension.whole:
            return kinds.IntDistribution(int(dimension.low), int(dimension.high), log=dimension.log)
        return kinds.FloatDistribution(dimension.low, dimension.high, log=dimension.log)

    def _proposed(self, number: int, space: Mapping[str, Any]) -> SweepParams:
        """Return the values of a trial as TPE proposes them."""
        # A seed per trial: the state of a generator would be lost with a killed process.
        seed = np.random.SeedSequence([self._seed, 3, number]).generate_state(1)[0]
        sampler = self._optuna.samplers.TPESampler(seed=int(seed))
        blank = self._optuna.trial.create_trial(state=self._optuna.trial.TrialState.RUNNING)
        found: SweepParams = {}
        for name, kind in space.items():
            value = sampler.sample_independent(self._study, blank, name, kind)
            if isinstance(kind, self._optuna.distributions.FloatDistribution):
                # Four digits, so that it can be typed, and still inside its range.
                value = min(kind.high, max(kind.low, float(f"{value:.4g}")))
            found[name] = value
        return found

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """Turn errors of the file system and of Optuna into one line that names the sweep."""
        damage = (ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError)
        try:
            yield
        except (OSError, TypeError, ValueError, *damage) as error:
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            raise RunError(
                f"the sweep {self.folder} cannot be used ({type(error).__name__}: {reason}). "
                f"Check {JOURNAL}, permissions and disk space, or choose another folder."
            ) from error


class _Held:
    """Replaces the journal's own lock: `RunLock` locks the study and ends with its process."""

    def acquire(self) -> bool:
        """Return at once."""
        return True

    def release(self) -> None:
        """Do nothing."""


def import_optuna() -> Any:
    """Return the package, which is an extra; its messages are left out.

    Raises:
        ConfigError: It is not installed.
    """
    try:
        optuna = import_module("optuna")
    except ImportError as error:
        raise ConfigError(
            f"a sweep needs the package optuna, which cannot be imported ({error}). "
            "Install it with: pip install 'stepladder[sweep]'"
        ) from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def _labels(choice: SweepChoice) -> tuple[Any, ...]:
    """Return the values of a field as Optuna stores them: tuples become text."""
    return tuple(value_text(v) if isinstance(v, tuple) else v for v in choice.values)


def _cut_off_half_a_line(path: Path) -> None:
    """Remove an incomplete last line of a killed process, to which Optuna would append."""
    with os.fdopen(open_regular(path, os.O_RDWR | os.O_CREAT), "r+b") as file:
        content = file.read()
        file.truncate(content.rfind(b"\n") + 1)


def _refuse_foreign(folder: Path) -> None:
    if not folder.exists():
        return
    if not folder.is_dir():
        raise RunError(f"{folder} is a file. Choose a new or empty folder for the sweep.")
    others = sorted({entry.name for entry in folder.iterdir()} - {SWEEP_LOCK})
    if others and not os.path.lexists(folder / JOURNAL):
        raise RunError(
            f"{folder} is not empty and does not hold a sweep: it has {others[0]!r}. "
            "Choose a new or empty folder."
        )
