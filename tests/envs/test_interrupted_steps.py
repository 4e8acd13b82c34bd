"""Ctrl-C at every line of a vector step: what envs have finished is observed, each episode once.

The envs keep a ledger of the episodes that they finish, a listener one of those that the curriculum
was told of. Whatever line the interrupt hits, in the wrapper, in the env or in the collection, both
are the same in the end, and every draw is accounted for.
"""

import contextlib
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from stable_baselines3.common.vec_env import DummyVecEnv

from games.game_curricula import batch, phases
from interrupts import interrupted
from stepladder import CurriculumEnv, CurriculumVectorEnv, Staged, Task, Uniform, make_vec
from stepladder.envs.sb3 import CurriculumVecEnvWrapper
from stepladder.errors import ChannelError
from stepladder.sync import EpisodeCounts

MODES = tuple(AutoresetMode)
NUM_ENVS = 2
NUM_LINES = 450
"""More than any step here has."""

TASKS = [
    Task(f"{stage}/{number}", stage, {"length": 1 + number // 2, "broken": number == 3})
    for stage in ("easy", "hard")
    for number in range(4)
]


class LedgerEnv(gym.Env[Any, Any]):
    """Plays tasks of so many steps, and writes down every episode that it has finished."""

    observation_space = gym.spaces.Box(-1.0, 1.0, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, ledger: list[tuple[int, int]], name: int):
        self.ledger, self.name = ledger, name
        self.task: Task | None = None
        self.left = 0

    def set_task(self, task: Task) -> None:
        if task.params.get("broken"):
            raise ValueError("cannot be built")
        self.task = task

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        assert self.task is not None
        self.left = self.task.params["length"]
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> Any:
        self.left -= 1
        assert self.left >= 0, "an env that has ended was stepped"
        if self.left == 0:
            self.ledger.append((self.name, self.task.params["length"]))  # type: ignore[union-attr]
        return np.zeros(1, np.float32), 1.0, self.left == 0, False, {"is_success": True}


def staged(**settings: Any) -> Staged:
    """Stages that are passed, and left again, every few episodes."""
    return Staged(
        TASKS,
        stages=("easy", "hard"),
        min_episodes=4,
        window_episodes=4,
        check_interval_episodes=2,
        early=None,
        **settings,
    )


def makers(ledger: list[Any]) -> list[Callable[[], Any]]:
    return [
        lambda name=name: CurriculumEnv(LedgerEnv(ledger, name), enable_local_tracking=False)
        for name in range(NUM_ENVS)
    ]


def sync(ledger: list[Any], curriculum: Any, mode: AutoresetMode, backend: Any = "auto") -> Any:
    envs = SyncVectorEnv(makers(ledger), autoreset_mode=mode)
    return CurriculumVectorEnv(envs, curriculum, backend=backend, max_failed_share=1.0)


def pushed(ledger: list[Any], curriculum: Any, mode: AutoresetMode) -> Any:
    return sync(ledger, curriculum, mode, "pushed")


def shared(ledger: list[Any], curriculum: Any, mode: AutoresetMode) -> Any:
    return sync(ledger, curriculum, mode, "shared")


def plain_loop(ledger: list[Any], curriculum: Any, mode: AutoresetMode) -> Any:
    names = iter(range(10))
    return make_vec(
        lambda: LedgerEnv(ledger, next(names)),
        NUM_ENVS,
        curriculum=curriculum,
        num_workers=0,
        autoreset_mode=mode,
        timeout_s=None,
        max_failed_share=1.0,
    )


KINDS = {"sync": sync, "shared": shared, "pushed": pushed, "make_vec": plain_loop}


def advance(envs: Any, ended: Any) -> Any:
    """Do what a training loop does next; return who has ended."""
    if envs.metadata["autoreset_mode"] is AutoresetMode.DISABLED and ended.any():
        envs.reset(options={"reset_mask": ended})
    _, _, terminated, truncated, _ = envs.step(np.zeros(NUM_ENVS, dtype=np.int64))
    return terminated | truncated


def recover(envs: Any, line: int) -> Any:
    """Go on after an interrupt: with the next step if the envs let us, else with a reset."""
    if line % 2 and envs.metadata["autoreset_mode"] is not AutoresetMode.DISABLED:
        try:
            return advance(envs, np.zeros(NUM_ENVS, dtype=bool))
        except (ResetNeeded, ChannelError):
            pass
    envs.reset()
    return np.zeros(NUM_ENVS, dtype=bool)


def assert_consistent(counts: EpisodeCounts) -> None:
    assert counts.started == counts.finished + counts.aborted + counts.failed + counts.in_flight
    assert 0 <= counts.in_flight <= NUM_ENVS


def play_with_interrupts(envs: Any, curriculum: Any) -> None:
    """Interrupt a step at its first line, a later one at its second, and so on, twice."""
    envs.reset()
    ended = np.zeros(NUM_ENVS, dtype=bool)
    num_interrupted = [0, 0]
    for line in [*range(1, NUM_LINES), *range(1, NUM_LINES)]:
        done: list[Any] = []
        if interrupted(line, lambda: done.append(advance(envs, ended))):  # noqa: B023
            num_interrupted[line > 100] += 1
            ended = recover(envs, line)
        else:
            ended = done[0]
        # What was left is observed by now, and a stage may have changed.
        ended = advance(envs, ended)
        assert curriculum.plan.header["sequence"] % 2 == 0
        assert_consistent(envs.counts)
    assert min(num_interrupted) > 100


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
def test_ctrl_c_at_any_line_of_a_step_loses_and_doubles_no_episode(
    kind: str, mode: AutoresetMode
) -> None:
    ledger: list[Any] = []
    curriculum = staged(seed=3)
    told = noted(curriculum)
    envs = KINDS[kind](ledger, curriculum, mode)
    play_with_interrupts(envs, curriculum)
    envs.close()
    assert_same_ledgers(told, ledger)
    assert curriculum.num_observed == len(ledger) == envs.counts.finished
    steps = [change.episode for change in curriculum.history]
    assert steps == sorted(set(steps)), "a stage was changed twice"
    assert_consistent(envs.counts)


def noted(curriculum: Any) -> list[Any]:
    """Return a ledger of all records that the curriculum tells its listeners."""
    told: list[Any] = []
    curriculum.add_listener(
        lambda records: told.extend(records[["env_index", "episode_index", "length"]].tolist())
    )
    return told


def assert_same_ledgers(told: list[Any], ledger: list[Any]) -> None:
    assert len({entry[:2] for entry in told}) == len(told), "an episode was observed twice"
    assert sorted((env, length) for env, _, length in told) == sorted(ledger)


def test_the_same_holds_for_stable_baselines3() -> None:
    ledger: list[Any] = []
    curriculum = staged(seed=3)
    told = noted(curriculum)
    envs = CurriculumVecEnvWrapper(DummyVecEnv(makers(ledger)), curriculum, max_failed_share=1.0)
    actions = np.zeros(NUM_ENVS, dtype=np.int64)
    envs.reset()
    for line in range(1, NUM_LINES):
        if interrupted(line, lambda: envs.step(actions)):
            # What was half done must not be gone on with.
            with contextlib.suppress(ChannelError):
                envs.step(actions)
            envs.reset()
        envs.step(actions)
        assert_consistent(envs.counts)
    envs.close()
    assert_same_ledgers(told, ledger)
    assert curriculum.num_observed == len(ledger) == envs.counts.finished > NUM_LINES


def test_the_same_holds_for_an_env_that_tracks_by_itself() -> None:
    ledger: list[Any] = []
    curriculum = staged(seed=3)
    told = noted(curriculum)
    env = CurriculumEnv(LedgerEnv(ledger, 0), curriculum)

    def play() -> None:
        env.reset()
        while not env.step(0)[2]:
            pass

    for line in range(1, NUM_LINES):
        interrupted(line, play)
        play()
        counts = env._tracking().counts
        assert_consistent(counts)
        assert counts.in_flight == 0
    env.close()
    assert_same_ledgers(told, ledger)
    assert curriculum.num_observed == len(ledger) > NUM_LINES


def test_the_step_after_an_interrupted_one_returns_what_the_env_had_returned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ledger: list[Any] = []
    curriculum = Uniform([Task("one", params={"length": 1})])
    env = CurriculumEnv(LedgerEnv(ledger, 0), curriculum)
    env.reset()

    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(CurriculumEnv, "finish_episode", interrupt)
        with pytest.raises(KeyboardInterrupt):
            env.step(0)
    assert (len(ledger), curriculum.num_observed) == (1, 0)
    _, reward, terminated, _, info = env.step(1)
    assert (reward, terminated, info["curriculum_success"]) == (1.0, True, 1.0)
    assert (len(ledger), curriculum.num_observed) == (1, 1)
    env.reset()
    env.close()


@pytest.mark.parametrize("mode", MODES)
def test_the_same_holds_for_games_stepped_as_a_batch(mode: AutoresetMode) -> None:
    curriculum = phases("ledge")
    told = noted(curriculum)
    envs = batch("ledge", curriculum, NUM_ENVS, autoreset_mode=mode)
    envs.reset()
    ended = np.zeros(NUM_ENVS, dtype=bool)
    for line in [*range(1, NUM_LINES)] * 2:
        done: list[Any] = []
        if interrupted(line, lambda: done.append(advance(envs, ended))):  # noqa: B023
            ended = recover(envs, line)
        else:
            ended = done[0]
        assert_consistent(envs.counts)
    posted = envs.tracker.host.mails.heads["posted"].sum()
    envs.close()
    assert len({entry[:2] for entry in told}) == len(told)
    assert curriculum.num_observed == len(told) == posted > 50
