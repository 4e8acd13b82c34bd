"""The envs that one process steps one after another, and the rows they write to.

The inner loop of the vector env: the parent has a group for its own rows, each worker one per
batch, and `num_workers=0` is one group with all envs. A group reads actions from `memory`, steps or
resets its envs as the autoreset mode says, writes each row at once, and passes infos to callbacks.
Only one group has the state of a row.
"""

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode

from stepladder.arrays import Array
from stepladder.envs.curriculum_env import CurriculumEnv
from stepladder.envs.types import Action, GymEnv, Info, Observation, ResetOptions
from stepladder.envs.values import flag_of, reward_of
from stepladder.envs.workers.memory.layout import VectorArrays
from stepladder.envs.workers.memory.messages import fast_view
from stepladder.envs.workers.memory.observations import array_writer
from stepladder.envs.workers.memory.spaces import build, is_one_array
from stepladder.plans.status import ENDED, LOST, PLAYING

LOST_INFO = {"worker_died": True}
"""Info of the step that ends an episode whose worker has died."""

OnValue = Callable[[int, Any], None]
"""Takes a row and a message about it."""


class EnvGroup:
    """Steps some envs and writes their rows.

    Args:
        envs: The envs, each with one row.
        first_row: Row of the first env; the others follow.
        memory: Where the rows lie.
        mode: When an env that has ended is reset.
        on_info: Called with each info that is not empty.
        on_objects: Called with leaves of an observation that are not arrays; None where memory
            is this process's own, so that writing them is enough.
        progress: Where to write how many envs are done with the present order.
    """

    def __init__(
        self,
        envs: Sequence[GymEnv],
        first_row: int,
        memory: VectorArrays,
        mode: AutoresetMode,
        *,
        on_info: OnValue,
        on_objects: OnValue | None,
        progress: Any,
    ):
        self.envs = list(envs)
        self.rows = slice(first_row, first_row + len(self.envs))
        self.states = [ENDED] * len(self.envs)
        self._memory = memory
        self.mode = mode
        self._on_info = on_info
        self._progress = progress
        self._rewards = fast_view(memory.rewards)
        self._terminated = fast_view(memory.terminated)
        self._truncated = fast_view(memory.truncated)
        self._write = _writer(memory, on_objects)
        self._kept = memory.kept(self.rows)
        self._plain_observations: tuple[Any, Any, Any] = None, None, None
        """Array of observations that are one array each, shape and type of one."""
        if is_one_array(memory.layout.observations):
            array = memory.observations[0]
            self._plain_observations = array, memory.layout.observations[0].shape, array.dtype
        self._plain_actions: Array | None = None
        if is_one_array(memory.layout.actions):
            self._plain_actions = memory.actions[0][self.rows]
        # Returns and lengths are counted here for envs that would each do so at every step.
        self._tracked = [type(env) is CurriculumEnv for env in self.envs]
        self._steps = [
            env.inner_step if isinstance(env, CurriculumEnv) and tracked else env.step
            for env, tracked in zip(self.envs, self._tracked, strict=True)
        ]
        self._clock = 0
        self._begun = [0] * len(self.envs)
        self._fresh: list[int] = []
        self._returns = np.zeros(len(self.envs)) if any(self._tracked) else None
        self._last: tuple[Any, ...] | None = None
        """What the env being stepped has returned, until it is written and reported."""

    # Stepping.

    def step(self, start: int = 0) -> None:
        """Step all envs, or those from `start` on, with the actions that lie in memory."""
        actions = self._take_actions()
        first, states, steps, playing = self.rows.start, self.states, self._steps, PLAYING
        rewards, terminated, truncated = self._rewards, self._terminated, self._truncated
        write, progress = self._write, self._progress
        # The usual case without a call, which would take as long as the writing itself.
        plain, shape, dtype = self._plain_observations
        self._clock += 1
        for index in range(start, len(steps)):
            progress[0] = index
            row = first + index
            if states[index] != playing:
                self._step_over(index)
                continue
            self._last = result = steps[index](actions[index])
            observation, reward, has_terminated, is_truncated, info = result
            try:
                rewards[row] = reward
                terminated[row], truncated[row] = has_terminated, is_truncated
                has_ended = has_terminated or is_truncated
            except (TypeError, ValueError):
                has_ended = self._write_odd(row, reward, has_terminated, is_truncated)
            if has_ended:
                self._end(index, observation, info)
                continue
            if (
                type(observation) is np.ndarray
                and observation.shape == shape
                and observation.dtype is dtype
            ):
                plain[row] = observation
            else:
                write(row, observation)
            if info:
                self._on_info(row, info)
        # In this order: `_last` belongs to the env at which `progress` stands.
        self._last = None
        progress[0] = len(steps)
        if self._returns is not None:
            self._returns += self._memory.rewards[self.rows]
            for index in self._fresh:
                # Begun within this step, whose reward belongs to the episode before.
                self._returns[index] = 0.0
            self._fresh.clear()

    def _write_odd(self, row: int, reward: Any, terminated: Any, truncated: Any) -> bool:
        """Write a reward or flags that are not plain: an array with one entry, say."""
        self._rewards[row] = reward_of(reward, row)
        self._terminated[row] = flag_of(terminated, "terminated", row)
        self._truncated[row] = flag_of(truncated, "truncated", row)
        return self._terminated[row] or self._truncated[row]

    def _take_actions(self) -> list[Action]:
        """Return a copy of each env's action: an env may keep it."""
        if self._plain_actions is not None:
            return list(self._plain_actions.copy())
        columns = [column[self.rows].copy() for column in self._memory.actions]
        return [build(self.envs[0].action_space, row) for row in zip(*columns, strict=True)]

    def _end(self, index: int, observation: Observation, info: Info) -> None:
        """Finish the episode of an env that has just ended."""
        row = self.rows.start + index
        if self._tracked[index]:
            info = self._report(index, info, self._terminated[row], self._rewards[row])
        self._last = None
        if self.mode != AutoresetMode.SAME_STEP:
            self.states[index] = ENDED
            self._write(row, observation)
            if info:
                self._on_info(row, info)
            return
        self._reset_within_step(index, observation, info)

    def _report(
        self, index: int, info: Info, terminated: bool, reward: float, *, is_late: bool = False
    ) -> Info:
        env, returns = self.envs[index], self._returns
        assert isinstance(env, CurriculumEnv)
        assert returns is not None
        return env.finish_episode(
            info,
            terminated=terminated,
            episode_return=float(returns[index]) + reward,
            length=self._clock - self._begun[index],
            is_late=is_late,
        )

    def forget(self) -> None:
        """Do not report what the env being stepped has returned: it raised an error."""
        self._last = None

    def settle(self) -> None:
        """Report an episode that has ended in a step that Ctrl-C has interrupted."""
        last = self._last
        if last is None:
            return
        index = int(self._progress[0])
        if self._tracked[index] and (last[2] or last[3]):
            self._report(index, last[4], bool(last[2]), float(last[1]), is_late=True)
        self._last = None

    def _reset_within_step(self, index: int, observation: Observation, info: Info) -> None:
        # A copy: the env may use the same memory for the observation of its reset.
        final = {"final_obs": deepcopy(observation), "final_info": info}
        self._reset_one(index, None, None, final)
        self._fresh.append(index)

    def _step_over(self, index: int) -> None:
        """Step an env that is not in an episode."""
        row = self.rows.start + index
        self._rewards[row] = 0.0
        if self.states[index] == LOST:
            self._terminated[row], self._truncated[row] = False, True
            if self.mode == AutoresetMode.SAME_STEP:
                self._reset_within_step(index, self._read(row), dict(LOST_INFO))
            else:
                self.states[index] = ENDED
                self._on_info(row, dict(LOST_INFO))
            return
        if self.mode == AutoresetMode.DISABLED:
            raise ResetNeeded(
                f"env {row} has ended and autoreset is disabled. Reset it first: "
                "reset(options={'reset_mask': terminated | truncated})."
            )
        self._terminated[row], self._truncated[row] = False, False
        self._reset_one(index, None, None)

    def _read(self, row: int) -> Any:
        """Return the observation that lies in a row."""
        values = [
            column[row].copy() if leaf.is_array else column[row]
            for leaf, column in zip(
                self._memory.layout.observations, self._memory.observations, strict=True
            )
        ]
        return build(self.envs[0].observation_space, values)

    def keep(self) -> None:
        """Copy the observations as they are now, for a worker that replaces this one."""
        for written, kept in self._kept:
            np.copyto(kept, written)

    # Resetting.

    def reset(
        self, seeds: Sequence[int | None] | None = None, options: ResetOptions = None
    ) -> None:
        """Reset the envs whose row is set in the mask in memory.

        Args:
            seeds: One per row of the whole vector env; None is no seed for any.
            options: Given to every env; or one per row of the whole vector env.
        """
        for index in range(len(self.envs)):
            self._progress[0] = index
            row = self.rows.start + index
            if self._memory.reset_mask[row]:
                self._terminated[row], self._truncated[row] = False, False
                seed = None if seeds is None else seeds[row]
                self._reset_one(index, seed, options[row] if isinstance(options, list) else options)
        self._progress[0] = len(self.envs)

    def _reset_one(
        self, index: int, seed: int | None, options: Info | None, final: Info | None = None
    ) -> None:
        row = self.rows.start + index
        observation, info = self.envs[index].reset(seed=seed, options=options)
        self.states[index] = PLAYING
        self._begun[index] = self._clock
        if self._returns is not None:
            self._returns[index] = 0.0
        self._write(row, observation)
        if final is not None:
            self._on_info(row, {**final, **info})
        elif info:
            self._on_info(row, info)


def _writer(memory: VectorArrays, on_objects: OnValue | None) -> Callable[[int, Any], None]:
    """Return a function that writes an observation into a row."""
    leaves, columns = memory.layout.observations, memory.observations
    if is_one_array(leaves):
        return array_writer(leaves[0], columns[0])
    parts = [
        (leaf, array_writer(leaf, column) if leaf.is_array else column.__setitem__)
        for leaf, column in zip(leaves, columns, strict=True)
    ]
    loose = [leaf for leaf in leaves if not leaf.is_array]

    def write(row: int, observation: Observation) -> None:
        for leaf, write_leaf in parts:
            write_leaf(row, leaf.get(observation))
        if loose and on_objects is not None:
            on_objects(row, [leaf.get(observation) for leaf in loose])

    return write
