"""Checks of what an episode depends on: its task, its seed, and nothing else."""

from collections.abc import Iterator

from stepladder.diagnosis.evidence import EnvEvidence, Made, RepeatedEpisodes
from stepladder.diagnosis.finding import Told, check, error, note, warning

MOST_NAMED = 4


def _usable(env: EnvEvidence) -> tuple[Made, RepeatedEpisodes] | None:
    return None if env.made is None or env.repeats is None else (env.made, env.repeats)


def is_random(env: EnvEvidence) -> bool:
    """Whether a seed does not decide what an env that was just made plays."""
    return env.repeats is not None and env.repeats.fresh_differs_at is not None


def _at(step: int) -> str:
    return "the reset" if step == 0 else f"step {step}"


@check("not-reproducible", "env")
def not_reproducible(env: EnvEvidence) -> Iterator[Told]:
    """The same seed, task and actions give different episodes in two envs that were just made."""
    found = _usable(env)
    if found is None or not is_random(env):
        return
    made, repeats = found
    text = (
        "two envs with the same seed, task and actions differ at "
        f"{_at(repeats.fresh_differs_at or 0)}; expected equal episodes. Until they are equal, "
        "nobody can tell whether tasks have an effect"
    )
    if made.declares_randomness:
        yield note(f"{text}, but its spec says nondeterministic", "Nothing, if it must be so.")
        return
    yield error(
        text,
        "Call super().reset(seed=seed) and draw from self.np_random alone, not from random, "
        "np.random or the time.",
    )


@check("episodes-entangled", "env")
def entangled(env: EnvEvidence) -> Iterator[Told]:
    """An episode depends on those that the same env played before."""
    found = _usable(env)
    if found is None or is_random(env) or _is_late(found[1]):
        return
    again, after = found[1].again_differs_at, found[1].after_others_differs_at
    fix = "Set everything that an episode changes in reset(); a seed then decides all of it."
    if again is not None:
        yield warning(
            f"the second episode of an env, with the seed, task and actions of the first, differs "
            f"at {_at(again)}; expected equal episodes",
            fix,
        )
    elif after is not None:
        yield error(
            f"an episode differs at {_at(after)} when other tasks were played before it, with the "
            "same seed, task and actions; what one task sets stays for the next",
            f"{fix[:-1]}, whatever the task before has set.",
        )


@check("task-comes-late", "env")
def comes_late(env: EnvEvidence) -> Iterator[Told]:
    """A task has its effect one episode too late."""
    if env.repeats is not None and not is_random(env) and _is_late(env.repeats):
        yield error(
            f"{len(env.repeats.tasks)} tasks give the same episode in envs that were just made, "
            "and different ones later: a task reaches the episode after its own, and success is "
            "credited to the wrong task",
            "Use the task of set_task in the very next reset(), not in the one after.",
        )


@check("tasks-without-effect", "env")
def without_effect(env: EnvEvidence) -> Iterator[Told]:
    """Tasks with different params give the same episodes under one seed."""
    found = _usable(env)
    if found is None or len(found[1].tasks) < 2 or is_random(env) or _is_late(found[1]):
        return
    repeats = found[1]
    if repeats.num_distinct == 1:
        yield error(
            f"{len(repeats.tasks)} tasks with different params, among them "
            f"{_names(repeats.tasks)}, give the same observations and rewards over "
            f"{repeats.num_steps} steps with the same seeds and actions; expected different ones",
            "Let set_task(task) change what reset() and step() do: print task.params there, and "
            "look for wrappers that hide set_task or an env that reads another key.",
        )
        return
    for names in repeats.alike:
        yield note(
            f"the tasks {_names(names)} give the same observations and rewards over "
            f"{repeats.num_steps} steps with the same seeds and actions",
            "Look whether their params differ in something that the env reads.",
        )


def _is_late(repeats: RepeatedEpisodes) -> bool:
    return len(repeats.tasks) > 1 and repeats.num_distinct == 1 < repeats.num_distinct_in_turn


def _names(names: tuple[str, ...]) -> str:
    rest = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(map(repr, names[:MOST_NAMED])) + rest


@check("processes-disagree", "env")
def processes_disagree(env: EnvEvidence) -> Iterator[Told]:
    """Other processes give other episodes, with the same seeds, tasks and actions."""
    if env.repeats is None or is_random(env) or env.repeats.again_differs_at is not None:
        return
    other = env.elsewhere
    if other is not None and other.fresh_differs_at is None:
        same = zip(env.repeats.digests, other.digests, strict=False)
        differs = next((step for step, (one, two) in enumerate(same) if one != two), None)
        if differs is not None:
            yield error(
                f"an episode with the same seed, task and actions differs at {_at(differs)} in "
                "another process; a resumed training would not be the same",
                "Do not depend on the order of a set, on hash() or on the process; sort instead.",
            )
            return
    rows = env.rows
    if rows is not None and rows.differs_at is not None:
        yield error(
            f"{rows.num_envs} envs with {rows.num_workers} workers differ at {_at(rows.differs_at)}"
            " from the same envs in one process: envs of one process share something",
            "Keep what an episode changes in self, not in the class, the module or np.random.",
        )


@check("tasks-not-built", "env")
def not_built(env: EnvEvidence) -> Iterator[Told]:
    """`set_task` or `reset` raises for some tasks."""
    if env.play is None or not env.play.unbuilt:
        return
    (name, reason), *rest = env.play.unbuilt
    more = f", and {len(rest)} more," if rest else ""
    yield error(
        f"task {name!r}{more} of {env.play.num_tried} that were tried cannot be built: {reason}",
        "Fix set_task or the task's params; a misspelt key is the usual cause.",
    )


CHECKS = (
    *(not_reproducible, entangled, comes_late, without_effect),
    *(processes_disagree, not_built),
)
