"""``stepladder tune``: how many envs and workers are fastest on this machine."""

from collections.abc import Sequence
from dataclasses import dataclass

import tyro
from gymnasium.envs.registration import EnvSpec

from stepladder.cli.inputs.finding import look_for, one_line_for_env
from stepladder.cli.inputs.parsing import parse
from stepladder.cli.output import console
from stepladder.configs.checks import NotNegativeInteger, Positive, PositiveInteger
from stepladder.configs.codec import Config
from stepladder.envs.ids import find_env
from stepladder.envs.tuning import MakeEnv, Tuning, TuningRow, tune


@dataclass(frozen=True, kw_only=True)
class TuneArguments(Config):
    """Measure which numbers of envs and workers are fastest on this machine.

    Envs are stepped with random actions. Do not run anything else meanwhile.
    """

    env: tyro.conf.Positional[str]
    """A Gymnasium id such as CartPole-v1; module:id, where importing the module registers the id;
    or module:function, a function that makes an env."""

    worker_counts: tuple[NotNegativeInteger, ...] = ()
    """Numbers of worker processes to try, beside the main process. By default all from 0 to the
    number of cores minus one; with many cores, powers of two."""

    env_counts: tuple[PositiveInteger, ...] = ()
    """Numbers of envs to try. By default 1, 2, 4 and so on, as long as throughput rises."""

    seconds: Positive = 0.5
    """Seconds for which each setting is measured."""

    seed: NotNegativeInteger = 0
    """Seed of the actions and of the envs."""

    json: bool = False
    """Write one line of JSON per setting, and nothing else to standard output."""


def main(argv: Sequence[str]) -> int:
    """Run the verb; return the exit code."""
    arguments = parse(TuneArguments, argv, "tune")
    look_for(arguments.env)
    found = find_env(arguments.env)
    tuning = _tuned(arguments.env if isinstance(found, EnvSpec) else found, arguments)
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
    """Measure, and show the progress."""
    with console.progress("measuring") as tell:

        def tell_row(row: TuningRow) -> None:
            tell(f"{row.num_envs} envs, {row.num_workers} workers: {row.speedup:.2f}x")

        with one_line_for_env(arguments.env):
            return tune(
                env,
                worker_counts=arguments.worker_counts or None,
                env_counts=arguments.env_counts or None,
                seconds=arguments.seconds,
                seed=arguments.seed,
                on_row=tell_row,
            )
