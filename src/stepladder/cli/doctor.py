"""``stepladder doctor``: say what is wrong with an env, a config or a run, and how to fix it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import tyro

from stepladder.cli.inputs.finding import look_here
from stepladder.cli.inputs.parsing import parse, read_settings
from stepladder.cli.output import console
from stepladder.configs.checks import NotNegativeInteger, Positive, PositiveInteger
from stepladder.configs.codec import Config
from stepladder.diagnosis import Diagnosis, Finding, doctor

ILL = 1
"""Exit code if there is at least one error; 0 is healthy, 2 bad input."""

STYLES = {"error": "bold red", "warning": "yellow", "note": "dim"}

Appended = tyro.conf.UseAppendAction[tuple[str, ...]]


@dataclass(frozen=True, kw_only=True)
class DoctorArguments(Config):
    """Say what is wrong with an env, a config or a run, and how to fix it.

    An env is played in a process of its own, for some seconds. A run is only read. The exit code is
    0 without errors, 1 with errors, 2 if the input is wrong.
    """

    env_config_or_run: tyro.conf.Positional[str]
    """An env, as for train --env; or a preset or a JSON or YAML file with settings, also of a
    curriculum alone; or the folder of a run."""

    tasks: Annotated[str | None, tyro.conf.arg(metavar="FILE|MODULE:NAME")] = None
    """What is practised, as for train; by default what the game or the config has."""

    env_kwargs: Appended = ()
    """An argument for the env as KEY=VALUE; may be given several times."""

    source: Appended = ()
    """Which of its own tasks a game offers, as KEY=VALUE; may be given several times."""

    wrappers: tuple[str, ...] = ()
    """Put around the env, in this order, each as module:name. None by default."""

    deliver: str | None = None
    """How a task reaches the env, as for train; by default found out."""

    success_key: str | None = None
    """Info key that holds success; by default is_success, then success."""

    return_threshold: float | None = None
    """Return from which an episode is a success. None by default."""

    missing_success_is_failure: bool = False
    """Count an episode without any sign of success as a failure."""

    max_episode_steps: PositiveInteger | None = None
    """Steps after which any episode is cut off; by default the env decides."""

    num_envs: PositiveInteger | None = None
    """Envs of the training that is planned; by default 8, or as the config says."""

    num_workers: NotNegativeInteger | None = None
    """Workers of the training that is planned; by default a training chooses."""

    total_steps: PositiveInteger | None = None
    """Env steps of the training that is planned; by default 200000, or as the config says."""

    seed: NotNegativeInteger | None = None
    """Seed of what is played; 0 by default, or as the config says."""

    episodes: PositiveInteger = 24
    """Episodes of random play."""

    seconds: Positive = 4.0
    """Seconds for which an env is played at random; all else takes about as long again."""

    limit_s: Positive = 20.0
    """Seconds after which one probe of an env counts as hanging."""

    notes: bool = False
    """Show notes too: facts that may be as they are wanted."""

    trust: bool = False
    """Allow imports of modules that a config file names, which runs their code."""

    json: bool = False
    """Write one line of JSON with everything, and nothing else to standard output."""

    def settings(self) -> dict[str, Any]:
        """Return the settings of a training that were given."""
        given: dict[str, Any] = {
            name: getattr(self, name) for name in TRAINING_SETTINGS if getattr(self, name)
        }
        # Numbers that may be 0.
        for name in ("return_threshold", "num_workers", "seed"):
            if getattr(self, name) is not None:
                given[name] = getattr(self, name)
        for name, flag in (("env_kwargs", "--env-kwargs"), ("source", "--source")):
            if getattr(self, name):
                given[name] = read_settings(getattr(self, name), flag)
        return given


TRAINING_SETTINGS = (
    *("tasks", "wrappers", "deliver", "success_key", "missing_success_is_failure"),
    *("max_episode_steps", "num_envs", "total_steps"),
)


def main(argv: Sequence[str]) -> int:
    """Run the verb; return the exit code."""
    arguments = parse(DoctorArguments, argv, "doctor")
    look_here()
    with console.progress("examining"):
        found = doctor(
            arguments.env_config_or_run,
            episodes=arguments.episodes,
            seconds=arguments.seconds,
            limit_s=arguments.limit_s,
            trust=arguments.trust,
            **arguments.settings(),
        )
    if arguments.json:
        console.print_json(found.to_json())
    else:
        show(found, arguments.notes)
    return 0 if found.is_healthy else ILL


def show(found: Diagnosis, notes: bool) -> None:
    """Write what was found, the worst first, for a person."""
    screen = console.results()
    screen.print(
        f"{found.subject}: {found.summary}; {found.seconds:.1f} s", style="bold", soft_wrap=True
    )
    hidden = 0 if notes else len(found.of("note"))
    for one in found.findings:
        if notes or one.severity != "note":
            _show_one(one)
    counts = [
        f"{len(of_kind)} {kind}{'s'[: len(of_kind) != 1]}"
        for kind in STYLES
        if (of_kind := found.of(kind)) and (notes or kind != "note")
    ]
    ending = f" ({hidden} note{'s'[: hidden != 1]}: --notes)" if hidden else ""
    verdict = ", ".join(counts) or "nothing found"
    console.say(f"{verdict}, {found.num_checks} checks{ending}")


def _show_one(one: Finding) -> None:
    screen = console.results()
    screen.print()
    screen.print(f"{one.severity}: {one.check}", style=STYLES[one.severity])
    screen.print(f"  {one.text}", soft_wrap=True)
    screen.print(f"  fix: {one.fix}", soft_wrap=True)
    screen.print(f"  see: {one.link}", style="dim")
