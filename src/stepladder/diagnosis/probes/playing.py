"""Random play: a few episodes of each task, and all that is odd about them.

One of the probes. What cannot be built, is not finite or is not in its space is counted here, once
per kind, and play goes on.
"""

import math
import statistics
import time
from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from stepladder.diagnosis.evidence import PlayedEpisode, RandomPlay
from stepladder.diagnosis.probes import values
from stepladder.diagnosis.probes.subject import Subject, SubjectEnv
from stepladder.errors import SignalError, shown
from stepladder.tasks import Task

GIVEN_UP_AFTER = 5_000
"""Steps after which an episode is given up."""

MOST_KINDS = 5
"""Kinds of odd values that are told."""

Actions = np.random.Generator


class PlayProbe:
    """Plays until there are enough episodes, or the time is over.

    What has been seen so far can be asked at any time: of an env that fails in its tenth episode,
    nine are known.
    """

    def __init__(self, subject: Subject, needs_success: bool):
        self._subject, self._needs_success = subject, needs_success
        self._episodes: list[PlayedEpisode] = []
        self._step_s: list[float] = []
        self._odd: dict[str, dict[str, str]] = {"not finite": {}, "outside": {}, "cast": {}}
        self._unbuilt: dict[str, str] = {}
        self.now: Task | None = None
        """The task that is being played."""

    def run(self) -> None:
        """Play."""
        subject, began = self._subject, time.perf_counter()
        player = subject.make()
        # Each task once; then as many as were asked for.
        wanted = max(subject.num_episodes, len(subject.tasks))
        tries = 0
        try:
            while len(self._episodes) < wanted and tries < 4 * wanted:
                late = time.perf_counter() - began > subject.seconds
                if late and (len(self._episodes) >= 2 or tries >= len(subject.tasks)):
                    break
                self.now = subject.tasks[tries % len(subject.tasks)]
                self._play(player, self.now, tries, began)
                tries += 1
        finally:
            player.close()

    def result(self) -> RandomPlay:
        """Return what has been seen so far."""
        odd = {kind: tuple(found.values()) for kind, found in self._odd.items()}
        return RandomPlay(
            episodes=tuple(self._episodes),
            step_seconds=statistics.median(self._step_s) if self._step_s else math.nan,
            num_steps=len(self._step_s),
            not_finite=odd["not finite"],
            outside=odd["outside"],
            cast=odd["cast"],
            unbuilt=tuple(self._unbuilt.items()),
            num_tried=len(self._subject.tasks),
        )

    def _play(self, player: SubjectEnv, task: Task | None, number: int, began: float) -> None:
        env, subject = player.env, self._subject
        try:
            seen, _ = player.begin(task, subject.config.seed + number)
        except Exception as error:  # as CurriculumEnv does: the task is at fault
            if task is None:
                raise
            self._unbuilt[task.name] = f"{type(error).__name__}: {error}"
            return
        self._look(env, "the reset", seen)
        env.action_space.seed(subject.config.seed + number)
        total, length, terminated, truncated = 0.0, 0, False, False
        rewarded, before_last = -math.inf, -math.inf
        info: Any = {}
        while not (terminated or truncated):
            action = env.action_space.sample()
            before = time.perf_counter()
            seen, reward, terminated, truncated, info = env.step(action)
            now = time.perf_counter()
            self._step_s.append(now - before)
            length += 1
            where = f"step {length}"
            before_last = max(before_last, rewarded)
            self._look(env, where, seen)
            rewarded = self._reward(reward, where)
            total += rewarded
            if length >= GIVEN_UP_AFTER or now - began > 2.0 * subject.seconds:
                break
        has_ended = bool(terminated or truncated)
        success, trouble = self._success(info, total) if has_ended else (None, "")
        self._episodes.append(
            PlayedEpisode(
                task="" if task is None else task.name,
                label="" if task is None else task.label,
                length=length,
                total=total,
                last_reward=rewarded,
                best_before=before_last,
                terminated=bool(terminated),
                truncated=bool(truncated),
                has_ended=has_ended,
                success=success,
                success_trouble=trouble,
                info_keys=tuple(sorted(map(str, info))) if isinstance(info, Mapping) else (),
            )
        )

    def _success(self, info: Any, total: float) -> tuple[float | None, str]:
        if not isinstance(info, Mapping):
            return None, f"the info is {shown(info)}, not a dict"
        reader = self._subject.settings.success
        try:
            success = reader.read(cast("Mapping[str, Any]", info), total, self._needs_success)
        except SignalError as error:
            return None, str(error)
        if math.isnan(success):
            return None, ""
        if not 0.0 <= success <= 1.0:
            return None, f"it is {success:g}; expected a bool or a number in [0, 1]"
        return success, ""

    def _reward(self, reward: Any, where: str) -> float:
        number = _number(reward)
        if not math.isfinite(number):
            self._note("not finite", "reward", f"the reward of {where} is {shown(reward)}")
        return number

    def _look(self, env: Any, where: str, seen: Any) -> None:
        for path, space, value in values.parts(env.observation_space, seen):
            if values.not_finite(value):
                bad = int(np.flatnonzero(~np.isfinite(np.asarray(value)).reshape(-1))[0])
                number = np.asarray(value).reshape(-1)[bad]
                text = f"the {path} of {where} has {number} at place {bad}"
                self._note("not finite", path, text)
                continue
            found = values.outside(space, value)
            if found is not None:
                text, fits = found
                self._note("cast" if fits else "outside", path, f"the {path} of {where} {text}")

    def _note(self, kind: str, key: str, text: str) -> None:
        found = self._odd[kind]
        if len(found) < MOST_KINDS:
            found.setdefault(key, text)


def _number(reward: Any) -> float:
    try:
        return float(reward)
    except (TypeError, ValueError):
        return math.nan
