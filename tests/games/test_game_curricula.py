"""A curriculum over a batch: what is drawn and reported inside compiled code.

Beside it the same curriculum over single games, each in a `CurriculumEnv`: both ways must give the
same, element for element. The headings are those of what must always be true.
"""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from games.game_cases import (
    DISABLED,
    IDS,
    NEXT_STEP,
    SAME_STEP,
    SINGLE_ENVS,
    VECTOR_ENVS,
    assert_same,
    random_actions,
)
from games.game_curricula import (
    CURRICULA,
    EACH_CURRICULUM,
    EACH_GAME,
    EACH_MODE,
    STAGES,
    batch,
    evicting,
    play,
    quick_stages,
    singles,
    state_of,
    tasks_of,
    which,
)
from stepladder import CurriculumEnv, CurriculumVectorEnv, make_vec
from stepladder.curricula import Curriculum, LearningProgress, Uniform
from stepladder.games.ledge.source import LedgeLevels
from stepladder.plans.record import Record
from stepladder.tasks import Task

# The same as single games.


@pytest.mark.slow
@EACH_MODE
@EACH_GAME
@EACH_CURRICULUM
def test_a_batch_gives_what_single_games_in_their_wrappers_give(
    kind: str, game: str, mode: AutoresetMode
) -> None:
    curricula = [CURRICULA[kind](game) for _ in range(2)]
    ours = batch(game, curricula[0], autoreset_mode=mode)
    theirs = singles(game, curricula[1], mode=mode)
    assert_same(ours.reset(seed=3), theirs.reset(seed=3))
    num_steps = 200 if game == "hockey" else 100
    for our, their in zip(play(ours, num_steps), play(theirs, num_steps), strict=True):
        assert_same(our, their)
    assert ours.counts == theirs.counts
    assert ours.staleness == theirs.staleness
    assert ours.counts.finished >= 10
    assert_same(state_of(curricula[0]), state_of(curricula[1]))
    for method in ("get_plan_version", "get_curriculum_stage", "get_curriculum_phase"):
        assert ours.call(method) == theirs.call(method)
    assert ours.call("get_curriculum_task") == theirs.call("get_curriculum_task")
    ours.close()
    theirs.close()


@EACH_MODE
def test_a_pool_that_never_ends_is_played_as_by_single_games(mode: AutoresetMode) -> None:
    settings = {"time_limit": 12}
    curricula = [
        LearningProgress(
            LedgeLevels(stages=("simplest", "simpler")),
            seed=2,
            capacity=6,
            eviction_plays=3,
            novice_plays=2,
            eviction_percentile=1.0,
        )
        for _ in range(2)
    ]
    ours = batch("ledge", curricula[0], autoreset_mode=mode, env_kwargs=settings)
    theirs = singles("ledge", curricula[1], mode=mode, **settings)
    assert_same(ours.reset(seed=3), theirs.reset(seed=3))
    for our, their in zip(play(ours, 150), play(theirs, 150), strict=True):
        assert_same(our, their)
    assert ours.counts == theirs.counts
    assert curricula[0].num_evicted == curricula[1].num_evicted > 5
    ours.close()
    theirs.close()


# 1. Conservation, 2. Credit.


def spy_on(curriculum: Curriculum) -> list[Record]:
    """Write down what a curriculum is given to observe."""
    seen: list[Record] = []
    curriculum.add_listener(lambda records: seen.extend(Record(*row) for row in records.tolist()))
    return seen


@EACH_MODE
@EACH_GAME
@pytest.mark.parametrize("num_threads", [1, 2])
def test_every_episode_is_observed_once_and_credited_to_what_was_played(
    game: str, mode: AutoresetMode, num_threads: int
) -> None:
    num_envs = 40
    curriculum = Uniform(tasks_of(game, 10), seed=2)
    credited = spy_on(curriculum)
    vec = batch(game, curriculum, num_envs, autoreset_mode=mode, num_threads=num_threads)
    rng = np.random.default_rng(0)
    vec.reset(seed=0)
    now = [(which(vec, game, row), 0.0, 0) for row in range(num_envs)]
    ends: list[list[tuple[int, float, int, bool]]] = [[] for _ in range(num_envs)]
    had_ended = np.zeros(num_envs, dtype=bool)
    for _ in range(200):
        _, rewards, terminated, truncated, _ = vec.step(random_actions(vec, rng))
        ended = terminated | truncated
        for row in range(num_envs):
            if had_ended[row] and mode is NEXT_STEP:
                now[row] = (which(vec, game, row), 0.0, 0)
                continue
            task, total, length = now[row]
            now[row] = (task, total + rewards[row], length + 1)
            if ended[row]:
                ends[row].append((*now[row], bool(truncated[row])))
        if mode is DISABLED and ended.any():
            vec.reset(options={"reset_mask": ended})
        if mode is not NEXT_STEP:
            for row in np.flatnonzero(ended).tolist():
                now[row] = (which(vec, game, row), 0.0, 0)
        had_ended = ended
    for row in range(num_envs):
        own = [record for record in credited if record.env_index == row]
        told = [
            (record.slot, record.episode_return, record.length, record.truncated) for record in own
        ]
        assert told == ends[row]
        assert [record.episode_index for record in own] == list(range(len(own)))
    counts = vec.counts
    assert counts.finished == curriculum.num_observed == sum(map(len, ends)) > 80
    assert counts.started == counts.finished + counts.in_flight
    assert (counts.in_flight, counts.aborted, counts.failed) == (counts.in_flight, 0, 0)
    assert curriculum.plays.tolist() == [
        sum(end[0] == slot for each in ends for end in each) for slot in range(10)
    ]
    vec.close()


@EACH_GAME
def test_a_reset_in_the_middle_aborts_what_was_played(game: str) -> None:
    curriculum = Uniform(tasks_of(game), seed=2)
    vec = batch(game, curriculum, 6)
    vec.reset(seed=0)
    play(vec, 2)
    vec.reset()
    assert vec.counts.aborted == 6
    mask = np.array([True, False, False, True, False, False])
    vec.reset(options={"reset_mask": mask})
    assert vec.counts.aborted == 8
    play(vec, 100)
    counts = vec.counts
    assert counts.started == counts.finished + counts.aborted + counts.in_flight
    assert counts.finished == curriculum.num_observed
    vec.close()


@EACH_MODE
@EACH_GAME
def test_a_result_of_an_evicted_task_never_lands_on_its_successor(
    game: str, mode: AutoresetMode
) -> None:
    curriculum = evicting(game)
    credited = spy_on(curriculum)
    vec = batch(game, curriculum, 6, autoreset_mode=mode)
    names = names_of(vec.reset(seed=0)[1])
    for *_, infos in play(vec, 700 if game == "hockey" else 250):
        names |= names_of(infos)
    by_life = Counter((record.slot, record.generation) for record in credited)
    assert curriculum.num_evicted > 5
    assert curriculum.num_orphaned > 0
    for slot, plays in enumerate(curriculum.plays().tolist()):
        assert plays == by_life[slot, int(curriculum.pool.generations[slot])]
    for record in credited:
        index = int(names[record.slot, record.generation].split()[1]) % 20
        if game == "ledge" and record.truncated:
            assert record.length == 4 + index
    vec.close()


def names_of(infos: dict[str, Any]) -> dict[tuple[int, int], str]:
    """Return by slot and generation which task infos say is played."""
    rows = np.flatnonzero(infos.get("_curriculum_task", []))
    columns = [
        infos[f"curriculum_{key}"][rows].tolist() if len(rows) else []
        for key in ("slot", "generation", "task")
    ]
    return {(slot, generation): task for slot, generation, task in zip(*columns, strict=True)}


@EACH_MODE
def test_infos_name_what_is_played_and_what_was(mode: AutoresetMode) -> None:
    curriculum = Uniform(tasks_of("ledge"), seed=2)
    vec = batch("ledge", curriculum, 4, autoreset_mode=mode)
    _, infos = vec.reset(seed=0)
    names = infos["curriculum_task"].tolist()
    num_ended = 0
    for _ in range(100):
        _, _, terminated, truncated, infos = vec.step(np.zeros(4, dtype=int))
        ended = terminated | truncated
        last = infos.get("final_info", infos) if mode is SAME_STEP else infos
        for row in np.flatnonzero(ended):
            num_ended += 1
            assert last["curriculum_task"][row] == names[row]
            assert last["curriculum_success"][row] == last["is_success"][row]
        if mode is DISABLED and ended.any():
            infos = vec.reset(options={"reset_mask": ended})[1]
        if "curriculum_task" in infos:
            for row in np.flatnonzero(infos["_curriculum_task"]):
                names[row] = infos["curriculum_task"][row]
        playing = ~ended | (mode is not NEXT_STEP)
        for row in np.flatnonzero(playing):
            assert names[row] == f"ledge {which(vec, 'ledge', row)}"
    assert num_ended > 20
    vec.close()


# 3. Freshness, 4. Agreement.


@EACH_MODE
@EACH_GAME
@pytest.mark.parametrize("num_threads", [1, 2])
def test_a_plan_is_never_older_than_the_autoreset_mode_makes_it(
    game: str, mode: AutoresetMode, num_threads: int
) -> None:
    curriculum = quick_stages(game, threshold=0.0)
    vec = batch(game, curriculum, 40, autoreset_mode=mode, num_threads=num_threads)
    _, infos = vec.reset(seed=0)
    now = curriculum.plan.version
    rng = np.random.default_rng(0)
    num_begun = 0
    for _ in range(120):
        _, _, terminated, truncated, infos = vec.step(random_actions(vec, rng))
        ended = terminated | truncated
        if mode is DISABLED:
            now = curriculum.plan.version
            infos = vec.reset(options={"reset_mask": ended})[1] if ended.any() else {}
        begun = infos.get("_curriculum_plan_version", np.zeros(40, dtype=bool))
        if mode is NEXT_STEP:
            begun = begun & ~ended
        for row in np.flatnonzero(begun):
            assert infos["curriculum_plan_version"][row] == now
            num_begun += 1
        now = curriculum.plan.version
        assert vec.check_agreement() == now
        assert set(vec.call("get_curriculum_stage")) == {curriculum.current_stage}
        assert set(vec.call("get_mixing_ratio")) == {curriculum.mixing_ratio()}
    staleness = vec.staleness
    assert staleness.largest == (1 if mode is SAME_STEP else 0)
    assert sum(staleness.draws_by_lag) == vec.counts.finished
    assert num_begun > 60
    assert curriculum.history
    vec.close()


@pytest.mark.parametrize("mode", [NEXT_STEP, DISABLED])
@EACH_GAME
def test_a_reset_right_after_an_advancement_draws_from_the_new_stage(
    game: str, mode: AutoresetMode
) -> None:
    curriculum = quick_stages(game, mixing=None, threshold=0.0)
    vec = batch(game, curriculum, 6, autoreset_mode=mode)
    vec.reset(seed=0)
    rng = np.random.default_rng(0)
    num_after = 0
    for _ in range(400 if game == "hockey" else 120):
        stage = curriculum.current_stage
        _, _, terminated, truncated, infos = vec.step(random_actions(vec, rng))
        ended = terminated | truncated
        if mode is DISABLED and ended.any():
            stage = curriculum.current_stage
            infos = vec.reset(options={"reset_mask": ended})[1]
            ended = ~ended
        if "curriculum_label" not in infos:
            continue
        begun = infos["_curriculum_label"] & ~ended
        assert set(infos["curriculum_label"][begun]) <= {stage}
        num_after += int(begun.sum()) if stage != STAGES[0] else 0
    assert len(curriculum.history) == 2
    assert num_after > 10
    vec.close()


# 5. Determinism.


@EACH_GAME
@pytest.mark.parametrize("mode", [NEXT_STEP, SAME_STEP])
@pytest.mark.parametrize("kind", ["staged", "evicting", "phased"])
def test_the_same_seed_plays_the_same_whatever_the_number_of_threads(
    kind: str, game: str, mode: AutoresetMode
) -> None:
    seen = []
    for num_threads in (1, 2, 3):
        curriculum = CURRICULA[kind](game)
        vec = batch(game, curriculum, 70, autoreset_mode=mode, num_threads=num_threads)
        begun = vec.reset(seed=1)
        seen.append([begun, *play(vec, 60), state_of(curriculum)])
        vec.close()
    assert_same(seen[1], seen[0])
    assert_same(seen[2], seen[0])


def test_the_curriculum_draws_the_same_whatever_the_envs_seed() -> None:
    names = []
    for seed in (1, 2, None):
        vec = batch("hockey", Uniform(tasks_of("hockey"), seed=5), 8)
        names.append(vec.reset(seed=seed)[1]["curriculum_task"].tolist())
        vec.close()
    assert names[0] == names[1] == names[2]


def test_games_of_one_task_differ_from_episode_to_episode() -> None:
    task = Task("only", params={"mode": "TRAIN_SHOOTING"})
    vec = batch("hockey", Uniform([task], seed=5), 8)
    seen = np.concatenate([vec.reset(seed=3 if number == 0 else None)[0] for number in range(20)])
    assert len(np.unique(seen, axis=0)) == len(seen)
    vec.close()


@EACH_GAME
@pytest.mark.parametrize("backend", ["local", "shared"])
def test_any_memory_carries_the_same(game: str, backend: Any) -> None:
    curricula = [quick_stages(game) for _ in range(2)]
    ours = CurriculumVectorEnv(VECTOR_ENVS[game](5), curricula[0], backend=backend)
    theirs = batch(game, curricula[1])
    assert_same(ours.reset(seed=1), theirs.reset(seed=1))
    assert_same(play(ours, 100), play(theirs, 100))
    ours.close()
    theirs.close()


# Without a batch.


@EACH_GAME
def test_a_single_game_can_track_by_itself(game: str) -> None:
    curriculum = quick_stages(game, threshold=0.0)
    env = CurriculumEnv(SINGLE_ENVS[game](), curriculum)
    env.action_space.seed(0)
    lengths = []
    for number in range(40):
        _, info = env.reset(seed=0 if number == 0 else None)
        index = int(info["curriculum_task"].split()[1])
        assert which(env.unwrapped.vec, game, 0) == index  # type: ignore[attr-defined]
        ended, steps = False, 0
        while not ended:
            _, _, terminated, truncated, info = env.step(env.action_space.sample())
            steps, ended = steps + 1, terminated or truncated
        assert info["curriculum_task"] == f"{game} {index}"
        lengths.append(steps)
    assert curriculum.num_observed == 40
    assert curriculum.num_steps == sum(lengths)
    assert curriculum.history
    env.close()


@pytest.mark.processes
@pytest.mark.timeout(60)
@pytest.mark.parametrize("mode", [NEXT_STEP, SAME_STEP])
@EACH_GAME
def test_worker_processes_and_a_batch_teach_the_same(game: str, mode: AutoresetMode) -> None:
    curricula = [quick_stages(game) for _ in range(2)]
    ours = batch(game, curricula[0], 4, autoreset_mode=mode)
    theirs = make_vec(IDS[game], 4, curriculum=curricula[1], num_workers=1, autoreset_mode=mode)
    try:
        assert_same(ours.reset(seed=3), theirs.reset(seed=3))
        assert_same(play(ours, 120), play(theirs, 120))
        assert ours.counts == theirs.counts
        assert_same(state_of(curricula[0]), state_of(curricula[1]))
    finally:
        ours.close()
        theirs.close()
