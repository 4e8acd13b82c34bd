"""``stepladder tune``: how many envs and workers are fastest on this machine."""

from collections.abc import Sequence
from dataclasses import dataclass

import tyro
from gymnasium.envs.registration import EnvSpec

from stepladder.cli import console
from stepladder.cli.finding import look_for
from stepladder.cli.parsing import parse
from stepladder.configs.checks import Count, CountOrZero, Positive
from stepladder.configs.codec import Config
from stepladder.envs.ids import find_env
from stepladder.envs.tuning import MakeEnv, Tuning, TuningRow, tune
from stepladder.errors import EnvError, StepladderError


@dataclass(frozen=True, kw_only=True)
class TuneArguments(Config):
    """Find out how many envs and workers are fastest on this machine.

    Envs are stepped with random actions. Leave the machine alone meanwhile.
    """

    env: tyro.conf.Positional[str]
    """A Gymnasium id, such as CartPole-v1; module:id, if importing the module registers it; or a
    function that makes an env, as module:function."""

    worker_counts: tuple[CountOrZero, ...] = ()
    """Numbers of workers to try beside the main process. By default 0 and all up to one less than
    there are cores; with many cores powers of two."""

    env_counts: tuple[Count, ...] = ()
    """Numbers of envs to try. By default 1, 2, 4 and so on, as long as throughput rises."""

    seconds: Positive = 0.5
    """How long each setting is measured."""

    seed: CountOrZero = 0
    """Seed of the actions and of the envs."""

    json: bool = False
    """Whether to write one line of JSON per setting, and nothing else to standard output."""


def main(argv: Sequence[str]) -> int:
    """Run the verb; return the exit code."""
    arguments = parse(TuneArguments, argv, "tune")
    tuning = _tuned(_resolved(arguments.env), arguments)
    if arguments.json:
        for row in tuning.to_json():
            console.print_json(row)
        return 0
    console.say(tuning.as_text())
    console.say("*  the fewest envs, then workers, within 5 % of the fastest:\n")
    module, _, function = arguments.env.partition(":")
    where = "" if tuning.is_id else f"  # from {module} import {function}"
    console.say(f"{tuning.call}{where}")
    return 0


def _tuned(env: MakeEnv, arguments: TuneArguments) -> Tuning:
    """Measure, telling whoever looks on how far it is."""
    aside = console.asides()
    status = None if aside is None else aside.status("measuring")
    if status is not None:
        status.start()

    def tell(row: TuningRow) -> None:
        if status is not None:
            status.update(f"{row.num_envs} envs, {row.num_workers} workers: {row.speedup:.2f}x")

    try:
        return tune(
            env,
            worker_counts=arguments.worker_counts or None,
            env_counts=arguments.env_counts or None,
            seconds=arguments.seconds,
            seed=arguments.seed,
            on_row=tell,
        )
    except Exception as error:  # the env's own; a command says it in one line
        if isinstance(error, StepladderError) or not hasattr(error, "env_index"):
            raise
        raise EnvError(
            f"{arguments.env} raised {type(error).__name__}: {error} when it was played with "
            "random actions. Mend the env."
        ) from error
    finally:
        if status is not None:
            status.stop()


def _resolved(text: str) -> MakeEnv:
    """Return the function that is named as module:function, or the id as it is."""
    look_for(text)
    found = find_env(text)
    return text if isinstance(found, EnvSpec) else found
