"""Phases as the ancestor writes them, as phases of a `PhasedConfig`.

Part of `ancestor_config`. A phase there has an env mode, an opponent and a schedule of rewards;
here these are settings of the phase, drawn anew for every episode of every env.
"""

from dataclasses import dataclass, field
from typing import Any

from stepladder.curricula.phased.config import Phase
from stepladder.curricula.phased.settings import Mixed, Ramp
from stepladder.games.hockey.rules import LIMIT, TRAINING_LIMIT
from stepladder.games.hockey.task import CALLED, MODES
from stepladder.training.problems import Problems
from stepladder.training.sections import Section

SCRIPTED = {"none": "none", "basic_weak": "weak", "basic_strong": "strong"}
NEURAL_TYPES = {"archive": f"{CALLED}archive", "run_checkpoints": f"{CALLED}pool"}
MIXTURE, SELF_PLAY = "weighted_mixture", "self_play"
TYPES = (*SCRIPTED, SELF_PLAY, *NEURAL_TYPES)

TOLERANCE = 0.01
"""How far from 1 the weights of a mixture of opponents may sum."""

SHAPING = (
    ("closeness_weight", "CLOSENESS_START", "CLOSENESS_FINAL"),
    ("touch_weight", "TOUCH_START", "TOUCH_FINAL"),
    ("direction_weight", "DIRECTION_START", "DIRECTION_FINAL"),
)
"""A hockey task's weight of a reward, and the keys of its first and its last value."""


@dataclass
class Course:
    """All phases, and what they say about the training as a whole."""

    phases: list[Phase] = field(default_factory=list[Phase])
    longest: list[int] = field(default_factory=list[int])
    """Most steps that an episode of each phase can have."""
    keeps_buffer: list[str] = field(default_factory=list[str])
    """Phases at whose beginning the memory is not cleared."""
    deterministic: dict[str, bool] = field(default_factory=dict[str, bool])
    """What was said about how neural opponents play, by the path of who said it."""

    @property
    def opponents(self) -> set[str]:
        """Every opponent of any phase."""
        found: set[str] = set()
        for phase in self.phases:
            setting = phase.settings["opponent"]
            found.update(setting.values if isinstance(setting, Mixed) else (setting,))
        return found

    @property
    def num_episodes(self) -> int:
        """Episodes of all phases together."""
        return sum(phase.episodes or 0 for phase in self.phases)

    def steps_of(self, num_episodes: float) -> int:
        """Return how many steps the first so many episodes have, if each is as long as can be."""
        steps, rest = 0.0, num_episodes
        for phase, longest in zip(self.phases, self.longest, strict=True):
            played = min(rest, phase.episodes or 0)
            steps, rest = steps + played * longest, rest - played
        return max(1, round(steps + rest * max(self.longest[-1:], default=0)))


def read_course(entries: list[Any], max_episode_steps: int, problems: Problems) -> Course:
    """Return the phases of a list; where there are problems, as far as they could be read."""
    course, names = Course(), list[str]()
    for index, entry in enumerate(entries):
        section = Section(entry, f"curriculum.phases[{index}]", problems)
        name = section.text("name", f"phase {index}") if section.require("name") else ""
        if name and name in names:
            section.refuse("name", f"{name!r} is the name of an earlier phase too. Rename one.")
        names.append(name)
        episodes = section.whole("episodes", 1) if section.require("episodes") else 1
        settings = {
            **_environment(section),
            "opponent": _opponent(section, course),
            **_shaping(section),
        }
        if not section.truth("clear_buffer", True):
            course.keeps_buffer.append(name)
        section.close()
        course.phases.append(
            Phase(name=name or f"phase {index}", episodes=episodes, settings=settings)
        )
        course.longest.append(min(max_episode_steps, _longest(settings["mode"])))
    _refuse_disagreement(course, problems)
    return course


def _environment(phase: Section) -> dict[str, Any]:
    """Return the settings that say how a game begins."""
    phase.require("environment")
    section = phase.section("environment")
    mode: Any = section.choice("mode", list(MODES), "NORMAL")
    if section.has("mixture"):
        if section.has("mode"):
            section.refuse("mixture", "is there beside mode. Give one of them.")
        mode = _modes(section)
    elif not section.has("mode") and phase.has("environment") and section.is_object:
        section.refuse("mode", "is missing. Give it, or a mixture.")
    settings = {"mode": mode}
    if not section.truth("keep_mode", True):
        settings["keep_mode"] = False
    section.close()
    return settings


def _modes(environment: Section) -> Any:
    modes, weights = list[str](), list[float]()
    for index, entry in enumerate(environment.entries("mixture")):
        section = Section(entry, f"{environment.path}.mixture[{index}]", environment.problems)
        section.require("mode")
        modes.append(section.choice("mode", list(MODES), "NORMAL"))
        weights.append(section.number("weight", 1.0, low=0.0))
        section.close()
    if modes and sum(weights) <= 0:
        environment.refuse("mixture", "has no weight above 0. Give at least one.")
    return _mixed(modes, weights)


def _opponent(phase: Section, course: Course) -> Any:
    """Return the opponent of a phase, by its name in hockey tasks, or several as `Mixed`."""
    phase.require("opponent")
    section = phase.section("opponent")
    if not phase.has("opponent"):
        return "none"
    if section.values.get("type") != MIXTURE:
        name, _ = _one_opponent(section, (*TYPES, MIXTURE), course)
        return name
    # A program writes whatever an opponent can have.
    for name in ("type", "weight", "checkpoint", "deterministic"):
        section.has(name)
    names, weights = list[str](), list[float]()
    for index, entry in enumerate(section.entries("opponents")):
        one = Section(entry, f"{section.path}.opponents[{index}]", section.problems)
        name, weight = _one_opponent(one, TYPES, course)
        names.append(name)
        weights.append(weight)
    if names and abs(sum(weights) - 1.0) > TOLERANCE:
        section.refuse(
            "opponents", f"has weights that sum to {sum(weights):g}; they must sum to 1."
        )
    section.close()
    return _mixed(names, weights)


def _one_opponent(section: Section, types: tuple[str, ...], course: Course) -> tuple[str, float]:
    """Return the name and the weight of an opponent."""
    section.require("type")
    kind = section.choice("type", types, "none")
    weight = section.number("weight", 1.0, low=0.0)
    # Also written of scripted opponents, of whom they mean nothing.
    checkpoint = section.text("checkpoint", "latest")
    is_deterministic = section.truth("deterministic", True)
    if kind not in SCRIPTED:
        section.text("agent_type", "")
        if section.has("deterministic"):
            course.deterministic[section.path] = is_deterministic
    if section.has("opponents"):
        section.refuse("opponents", f"belongs to the type {MIXTURE}. Remove it, or say that.")
    if kind == "archive" and section.has("distribution"):
        section.refuse(
            "distribution",
            "cannot be chosen: whom of the archive to play follows from the results so far. "
            "Leave it out.",
        )
    section.close()
    if kind in SCRIPTED:
        return SCRIPTED[kind], weight
    newest = "newest" if checkpoint == "latest" else checkpoint
    return NEURAL_TYPES.get(kind, f"{CALLED}{newest}"), weight


def _refuse_disagreement(course: Course, problems: Problems) -> None:
    """Refuse neural opponents of which some play their best action and some do not."""
    (first, *others) = course.deterministic.items() or [("", True)]
    for path, is_deterministic in others:
        if is_deterministic != first[1]:
            problems.add(
                f"{path}.deterministic",
                f"is {is_deterministic} and {first[0]}.deterministic is {first[1]}; it holds for "
                "the whole training. Make them agree.",
            )


def _shaping(phase: Section) -> dict[str, Any]:
    """Return weights of rewards that stay for N episodes of the phase and move for K more."""
    if not phase.has("reward_shaping"):
        return {}
    section = phase.section("reward_shaping")
    for key in ("N", "K", *(key for keys in SHAPING for key in keys[1:])):
        if key != "DIRECTION_START":
            section.require(key)
    hold, ramp = section.whole("N", 0, 0), section.whole("K", 0, 0)
    settings = {
        name: _ramp(section.number(start, 0.0), section.number(end, 0.0), hold, ramp)
        for name, start, end in SHAPING
    }
    section.close()
    return settings


def _ramp(start: float, end: float, hold: int, ramp: int) -> Any:
    if ramp > 0:
        return Ramp(start=start, end=end, hold_episodes=hold, ramp_episodes=ramp)
    # Without a ramp the last value holds from episode `hold` on.
    return end if hold == 0 else Ramp(start=start, end=end, hold_episodes=hold - 1)


def _mixed(values: list[str], weights: list[float]) -> Any:
    drawn = [(value, weight) for value, weight in zip(values, weights, strict=True) if weight > 0]
    if len(drawn) < 2:
        return drawn[0][0] if drawn else "NORMAL"
    return Mixed(tuple(value for value, _ in drawn), tuple(weight for _, weight in drawn))


def _longest(mode: Any) -> int:
    modes = mode.values if isinstance(mode, Mixed) else (mode,)
    # A game lasts one step longer than its nominal limit.
    return 1 + max(LIMIT if mode == "NORMAL" else TRAINING_LIMIT for mode in modes)
