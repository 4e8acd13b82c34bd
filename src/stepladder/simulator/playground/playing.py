"""Plays what the playground was asked: the curriculum, uniform and the oracle, each as a course.

Above `question` and `course`. The curriculum is played exactly as `simulate` would play it, so that
a command repeats what a page shows. A question can be given up between two short parts: when a
newer one of the same asker has come, or when its time is over.
"""

import json
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import TypeVar, cast

from stepladder.errors import ConfigError, StepladderError
from stepladder.simulator.base import Scenario, Simulator
from stepladder.simulator.compare import ORACLE, UNIFORM
from stepladder.simulator.playground.course import PlayedCourse, Recorder
from stepladder.simulator.playground.epochs import Pause, TimeUp, begin_course
from stepladder.simulator.playground.question import OwnScenarios, Question, Setup
from stepladder.simulator.playground.seeds import Spread, spread
from stepladder.simulator.policies import best_run, policy_runs

CURVES = ("chosen", UNIFORM, ORACLE)
"""What can be asked for: the curriculum of the question, and what it is measured against."""

SPREAD_CURVES = ("chosen", UNIFORM)
"""What is played with several seeds. The oracle sees the hidden skills: one course is enough."""

LIMIT_S = 15.0
"""Longest time for one answer; it ends where it is then."""

ORACLE_POINTS = 60
"""Points of the oracle's course, which ends when all is learned."""

NUM_KEPT = 64
"""Answers that are kept: those of uniform and the oracle do not change with the curriculum."""

NUM_AT_ONCE = 2
"""Courses that are played at the same time."""


Answer = TypeVar("Answer", PlayedCourse, Spread)


class Superseded(StepladderError):
    """A newer question of the same asker has come."""


class Playground:
    """Answers questions of several askers, from any number of threads."""

    def __init__(self, limit_s: float = LIMIT_S):
        self._limit_s = limit_s
        self._kept: OrderedDict[str, PlayedCourse | Spread] = OrderedDict()
        self._turns: dict[str, int] = {}
        self._lock = threading.Lock()
        self._places = threading.Semaphore(NUM_AT_ONCE)

    def course(
        self,
        question: Question,
        curve: str = "chosen",
        *,
        places: OwnScenarios | None = None,
        asker: str = "",
        turn: int = 0,
    ) -> PlayedCourse:
        """Return one course of a question.

        Args:
            question: What is asked.
            curve: One of `CURVES`.
            places: Scenarios beside those that have a name of their own.
            asker: Who asks; a question with a higher turn gives up those with a lower one.
            turn: Number of the question.

        Raises:
            ConfigError: Something is wrong with the question; all of it is listed.
            Superseded: A newer question of the same asker has come.
        """
        if curve not in CURVES:
            raise ConfigError(f"there is no curve {curve!r}; there are {', '.join(CURVES)}.")
        setup = question.setup(places)
        return self._answer(
            _key(setup, curve), lambda pause: play(setup, curve, pause), asker, turn
        )

    def spread(
        self,
        question: Question,
        curve: str = "chosen",
        *,
        places: OwnScenarios | None = None,
        asker: str = "",
        turn: int = 0,
    ) -> Spread:
        """Return how the curriculum of a question, or uniform, fares with several seeds.

        Args:
            question: What is asked.
            curve: One of `SPREAD_CURVES`.
            places: As for `course`.
            asker: As for `course`.
            turn: As for `course`.

        Raises:
            ConfigError: Something is wrong with the question; all of it is listed.
            Superseded: A newer question of the same asker has come.
        """
        if curve not in SPREAD_CURVES:
            raise ConfigError(f"there is no curve {curve!r}; there are {', '.join(SPREAD_CURVES)}.")
        setup = question.setup(places)
        key = f"{question.num_seeds} seeds {_key(setup, curve)}"
        return self._answer(key, lambda pause: spread(setup, curve, pause), asker, turn)

    def _answer(self, key: str, find: Callable[[Pause], Answer], asker: str, turn: int) -> Answer:
        """Return what is kept under a key, or find it, as long as nobody asks for more."""
        with self._lock:
            self._turns[asker] = max(turn, self._turns.pop(asker, 0))
            while len(self._turns) > NUM_KEPT:
                del self._turns[next(iter(self._turns))]
        of_turn = f"{key} {asker} {turn}"
        with self._lock:
            for known in (key, of_turn):
                if known in self._kept:
                    self._kept.move_to_end(known)
                    return cast("Answer", self._kept[known])
        with self._places:
            self._require_newest(asker, turn)
            found = find(self._pause(asker, turn))
        with self._lock:
            # Asked again later, it may come further.
            self._kept[of_turn if found.is_cut else key] = found
            while len(self._kept) > NUM_KEPT:
                self._kept.popitem(last=False)
        return found

    def _require_newest(self, asker: str, turn: int) -> None:
        if self._turns.get(asker, turn) > turn:
            raise Superseded("a newer question has come")

    def _pause(self, asker: str, turn: int) -> Pause:
        # Counted from the first pause: before it, a method may have had to be compiled.
        deadline = math.inf

        def pause() -> None:
            nonlocal deadline
            self._require_newest(asker, turn)
            now = time.monotonic()
            deadline = min(deadline, now + self._limit_s)
            if now >= deadline:
                raise TimeUp("the time is over")

        return pause


def play(setup: Setup, curve: str, pause: Pause = lambda: None) -> PlayedCourse:
    """Play one course.

    Args:
        setup: What is played.
        curve: One of `CURVES`.
        pause: Called between short parts; what it raises ends the course, `TimeUp` where it is.
    """
    if curve == ORACLE:
        return _play_oracle(setup, pause)
    return _play_curriculum(setup, curve, pause)


def _play_curriculum(setup: Setup, curve: str, pause: Pause) -> PlayedCourse:
    with begin_course(setup, curve, pause) as begun:
        simulator, is_cut = begun.simulator, False
        recorder = Recorder(begun.place, simulator)
        recorder.note()
        try:
            for _ in begun.epochs:
                recorder.note()
            could_end = _could_end(setup, begun.place, simulator, pause)
            verdict = simulator.judge(could_end=could_end).text
        except TimeUp:
            is_cut, verdict = True, simulator.judge().text
        reasons = tuple(str(begun.curriculum.explain()).splitlines())
        return recorder.course(
            begun.kind, verdict=verdict, reasons=reasons, engine=begun.engine, is_cut=is_cut
        )


def _could_end(setup: Setup, place: Scenario, simulator: Simulator, pause: Pause) -> bool:
    """Return whether as many samples suffice for the oracle, as the verdict of `simulate` asks."""
    if simulator.done_at is not None:
        return True
    question = setup.question
    other = place.simulator(question.seed, question.num_envs)
    runs = policy_runs(other, place.policies(other), simulator.num_samples, pause)
    return best_run(runs).finished


def _play_oracle(setup: Setup, pause: Pause) -> PlayedCourse:
    place, question = setup.place, setup.question
    simulator = place.simulator(question.seed, question.num_envs)
    policies = place.policies(simulator)
    recorder = Recorder(place, simulator)
    recorder.note()
    try:
        best = best_run(policy_runs(simulator, policies, setup.budget, pause))
    except TimeUp:
        simulator.reset()
        return recorder.course("none in time", verdict=simulator.judge().text, is_cut=True)
    (policy,) = (one for one in policies if one.name == best.policy)
    play_until = policy.begin()
    for point in range(1, ORACLE_POINTS + 1):
        play_until(best.samples * point // ORACLE_POINTS)
        recorder.note()
    return recorder.course(best.policy, verdict=simulator.judge().text)


def _key(setup: Setup, curve: str) -> str:
    """Return what a course depends on."""
    question = setup.question
    parts = [curve, question.scenario, question.num_envs, setup.budget, question.seed]
    learner = {name: question.learner[name] for name in sorted(question.learner)}
    own = setup.config.to_json() if curve == "chosen" else None
    return json.dumps([parts, _stamp(setup.place), learner, own], sort_keys=True, default=str)


def _stamp(place: Scenario) -> str:
    """Return what tells a scenario from another one that has the same name."""
    return f"{place.about} {place.num_tasks} {place.budget}"
