"""``stepladder sweep``: many settings, by a grid or a search, in one folder.

Of a curriculum on simulated learners, or of real trainings.
"""

import sys
from collections.abc import Callable, Sequence

from stepladder.cli.inputs.parsing import command_line
from stepladder.cli.inputs.sweeping import AskedSweep, read_sweep
from stepladder.cli.main import INTERRUPTED
from stepladder.cli.output import console
from stepladder.cli.output.dashboard_beside import dashboard_beside
from stepladder.cli.output.sweep_end import tell_sweep_end
from stepladder.simulator.swept import SweepConfig
from stepladder.sweeps import SweepTrial, sweep
from stepladder.sweeps.space import value_text
from stepladder.visible import visible


def main(argv: Sequence[str]) -> int:
    """Run the verb; return the exit code."""
    asked = read_sweep(argv)
    teller = _Teller(asked)
    try:
        with (
            dashboard_beside(asked.out, asked.arguments.dashboard),
            console.progress("playing") as show,
        ):
            teller.show = show
            result = sweep(
                asked.objective,
                asked.dimensions,
                folder=asked.out,
                num_trials=asked.arguments.optuna_trials,
                jobs=asked.arguments.jobs,
                on_trial=teller.count,
                on_news=teller.tell,
            )
    except KeyboardInterrupt:
        text = f"stopped; what is done is kept in {asked.out}. Continue with: "
        print(visible(text + command_line("sweep", *argv)), file=sys.stderr)
        return INTERRUPTED
    if asked.arguments.json:
        for trial in result.ranked():
            console.print_json(trial.to_json())
    else:
        tell_sweep_end(result, asked)
    return 0


class _Teller:
    """Says how a sweep stands: in a terminal as it changes, elsewhere a line per training trial."""

    def __init__(self, asked: AskedSweep):
        self.show: Callable[[str], None] = lambda text: None
        self._says_lines = not (asked.arguments.json or isinstance(asked.objective, SweepConfig))
        self._standing = ""

    def count(self, trial: SweepTrial, done: int, total: int) -> None:
        """Note a trial that has ended."""
        values = " ".join(f"{name}={value_text(value)}" for name, value in trial.params.items())
        self._standing = f"{done} of {total} trials; {values}"
        self.show(self._standing)
        if self._says_lines:
            came = "failed" if trial.cell is None else f"{-trial.cell.cost:.3g}"
            console.say(f"trial {trial.number}: {values}: {came}")

    def tell(self, news: str) -> None:
        """Note how the trials stand that are being played."""
        self.show(f"{self._standing or 'training'}; {news}")
