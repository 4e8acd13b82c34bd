"""A curriculum over a batch: what is drawn and reported inside compiled code.

Beside it the same curriculum over single games, each in a `CurriculumEnv`: both ways must give the
same, element for element.
"""

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import RecordEpisodeStatistics

from games.game_cases import (
    DISABLED,
    EASY,
    IDS,
    LEDGE,
    MODES,
    SAME_STEP,
    SINGLE_ENVS,
    VECTOR_ENVS,
    assert_same,
    level_task,
    random_actions,
)
from stepladder import CurriculumEnv, CurriculumVectorEnv, make_vec
from stepladder.curricula import (
    Curriculum,
    Frontier,
    Learnability,
    LearningProgress,
    LevelReplay,
    Mixed,
    Mixing,
    Phase,
    Phased,
    Ramp,
    Staged,
    Uniform,
)
from stepladder.curricula.record import Record
from stepladder.curricula.snapshot import Snapshot
from stepladder.errors import (
    BuildError,
    ChannelError,
    ConfigError,
    NotConnectedError,
    StepladderError,
)
from stepladder.games.ledge.source import LedgeLevels
from stepladder.games.lessons import Lessons
from stepladder.tasks import Task

EACH_MODE = pytest.mark.parametrize("mode", MODES)
EACH_GAME = pytest.mark.parametrize("game", IDS)
STAGES = ("near", "far", "farther")
ROOM = "\n".join(["#" * 12, *["#" + "." * 10 + "#"] * 3, "#@SD.......#", "#" * 12])


def tasks_of(game: str, count: int = 12) -> list[Task]:
    """Return tasks of which each can be told by what is played: puck speed, or time limit.

    Those of hockey have a seed, so that single games in a `CurriculumEnv` play the same.
    """
    return [one_task(game, index, STAGES[index * len(STAGES) // count]) for index in range(count)]


def one_task(game: str, index: int, label: str = "default") -> Task:
    name = f"{game} {index}"
    if game == "ledge":
        return level_task(name, ROOM, label, time_limit=4 + index)
    params = {"mode": ("TRAIN_SHOOTING", "TRAIN_DEFENSE")[index % 2], "puck_speed": 30.0 + index}
    return Task(name, label, params, seed=index)


def which(vec: Any, game: str, env_index: int) -> int:
    """Return the index of the task that an env really plays."""
    if game == "ledge":
        return int(vec.unwrapped.shelf.records["time_limit"][env_index]) - 4
    return int(vec.unwrapped.shelf.records["puck_speed"][env_index]) - 30


def quick_stages(game: str, seed: int = 5, **settings: Any) -> Staged:
    return Staged(
        tasks_of(game),
        seed=seed,
        stages=STAGES,
        check_interval_episodes=4,
        **{
            "mixing": Mixing(min_results=2),
            "demotion": None,
            "min_episodes": 8,
            "threshold": 0.1,
            "window_episodes": 12,
            **settings,
        },
    )


def phases(game: str, seed: int = 5) -> Phased:
    """Return phases with settings of each episode."""
    if game == "ledge":
        settings: list[dict[str, Any]] = [
            {"time_limit": Mixed((5, 6, 7))},
            {"time_limit": Mixed((8, 9)), "level": EASY},
        ]
    else:
        settings = [
            {"opponent": Mixed(("weak", "strong")), "puck_speed": 30.0},
            {"opponent": "none", "puck_speed": Ramp(start=31.0, end=41.0, ramp_episodes=20)},
        ]
    return Phased(
        tasks_of(game),
        seed=seed,
        phases=(
            Phase(name="first", episodes=15, settings=settings[0]),
            Phase(name="second", settings=settings[1], mixture={"near": 1.0, "far": 2.0}),
        ),
    )


def evicting(game: str, seed: int = 5) -> LearningProgress:
    return LearningProgress(
        [one_task(game, index % 20) for index in range(20)]
        + [Task(f"again {index}", params=one_task(game, index % 20).params, seed=index % 20)
           for index in range(180)],
        seed=seed,
        capacity=5,
        eviction_plays=3,
        novice_plays=2,
        eviction_percentile=1.0,
    )


CURRICULA: dict[str, Callable[[str], Curriculum]] = {
    "uniform": lambda game: Uniform(tasks_of(game), seed=5),
    "staged": quick_stages,
    "phased": phases,
    "evicting": evicting,
    "progress": lambda game: LearningProgress(tasks_of(game), seed=5),
    "frontier": lambda game: Frontier(tasks_of(game), seed=5, eviction_plays=4),
    "replay": lambda game: LevelReplay(tasks_of(game), seed=5),
    "learnability": lambda game: Learnability(tasks_of(game), seed=5),
}
EACH_CURRICULUM = pytest.mark.parametrize("kind", CURRICULA)


def batch(game: str, curriculum: Any, num_envs: int = 5, **settings: Any) -> CurriculumVectorEnv:
    kwargs = {"num_threads": settings.pop("num_threads", 1), **settings.pop("env_kwargs", {})}
    return make_vec(IDS[game], num_envs, curriculum=curriculum, env_kwargs=kwargs, **settings)


def singles(
    game: str, curriculum: Any, num_envs: int = 5, *, mode: Any, **settings: Any
) -> CurriculumVectorEnv:
    """Return the same over single games."""

    def make() -> CurriculumEnv:
        return CurriculumEnv(SINGLE_ENVS[game](**settings), enable_local_tracking=False)

    return CurriculumVectorEnv(SyncVectorEnv([make] * num_envs, autoreset_mode=mode), curriculum)


def play(vec: Any, num_steps: int, seed: int = 0, *, is_idle: bool = False) -> list[Any]:
    """Play on with random actions; reset what has ended if nobody else does."""
    rng = np.random.default_rng(seed)
    results = []
    for _ in range(num_steps):
        actions = random_actions(vec, rng)
        if actions.ndim == 1:
            # Mostly to the right, where the door is.
            actions = np.where(rng.random(len(actions)) < 0.6, 2, actions)
        results.append(vec.step(actions * 0 if is_idle else actions))
        ended = results[-1][2] | results[-1][3]
        if vec.metadata["autoreset_mode"] is DISABLED and ended.any():
            results.append(vec.reset(options={"reset_mask": ended}))
    return results


# The same as single games.


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
    num_steps = 300 if game == "hockey" else 150
    for our, their in zip(play(ours, num_steps), play(theirs, num_steps), strict=True):
        assert_same(our, their)
    assert ours.counts == theirs.counts
    assert ours.staleness == theirs.staleness
    assert ours.counts.finished >= 20
    assert_same(state_of(curricula[0]), state_of(curricula[1]))
    for method in ("get_plan_version", "get_curriculum_stage", "get_curriculum_phase"):
        assert ours.call(method) == theirs.call(method)
    assert ours.call("get_curriculum_task") == theirs.call("get_curriculum_task")
    ours.close()
    theirs.close()


def state_of(curriculum: Curriculum) -> tuple[Any, ...]:
    snapshot = curriculum.snapshot()
    return snapshot.state, {key: np.asarray(array) for key, array in snapshot.arrays.items()}


@EACH_MODE
def test_a_pool_that_never_ends_is_played_as_by_single_games(mode: AutoresetMode) -> None:
    settings = {"max_episode_steps": 12}
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
    observe = curriculum.observe

    def observe_and_tell(records: Any) -> None:
        seen.extend(Record(*row) for row in records.tolist())
        observe(records)

    curriculum.observe = observe_and_tell  # type: ignore[method-assign]
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
            if had_ended[row] and mode is AutoresetMode.NEXT_STEP:
                now[row] = (which(vec, game, row), 0.0, 0)
                continue
            task, total, length = now[row]
            now[row] = (task, total + rewards[row], length + 1)
            if ended[row]:
                ends[row].append((*now[row], bool(truncated[row])))
        if mode is DISABLED and ended.any():
            vec.reset(options={"reset_mask": ended})
        if mode is not AutoresetMode.NEXT_STEP:
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
        playing = ~ended | (mode is not AutoresetMode.NEXT_STEP)
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
        if mode is AutoresetMode.NEXT_STEP:
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


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, DISABLED])
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
@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, SAME_STEP])
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


# 6. Exact resume.


def equal_lengths(game: str) -> list[Task]:
    """Return tasks whose episodes all have the same length if nobody moves."""
    if game == "ledge":
        return [
            Task(f"ledge {index}", STAGES[index % 3], {"stage": "simple", "time_limit": 9}, index)
            for index in range(9)
        ]
    params = {"mode": "TRAIN_SHOOTING", "opponent": "none"}
    return [Task(f"hockey {index}", STAGES[index % 3], params) for index in range(9)]


RESUMED: dict[str, Callable[[str], Curriculum]] = {
    "uniform": lambda game: Uniform(equal_lengths(game), seed=4),
    "staged": lambda game: Staged(
        equal_lengths(game), seed=4, stages=STAGES, min_episodes=8, threshold=0.0, demotion=None
    ),
    "progress": lambda game: LearningProgress(equal_lengths(game), seed=4),
    "phased": lambda game: Phased(
        equal_lengths(game),
        seed=4,
        phases=(
            Phase(name="one", episodes=12, settings={"starts": Mixed(("one", "two"))}),
            Phase(name="two", settings={"closeness_weight": Ramp(start=0.0, end=1.0, ramp_episodes=20)}),
        ),
    ),
}


@EACH_GAME
@pytest.mark.parametrize("kind", RESUMED)
def test_saved_killed_and_loaded_goes_on_as_if_it_had_never_stopped(
    kind: str, game: str, tmp_path: Any
) -> None:
    """Saved between episodes, everything that follows is the same, bit for bit."""
    if (kind, game) == ("phased", "ledge"):
        pytest.skip("these settings are hockey's")
    first = batch(game, RESUMED[kind](game), 4)
    first.reset(seed=7)
    while True:
        result = play(first, 1, is_idle=True)[0]
        if (result[2] | result[3]).all() and first.counts.finished >= 8:
            break
    first.snapshot().save(tmp_path / "saved.npz")
    # This step only resets.
    follows = play(first, 1, is_idle=True)[0]
    expected = play(first, 200, is_idle=True)
    first.close()
    for _ in range(2):
        later = batch(game, RESUMED[kind](game), 4)
        later.restore(Snapshot.load(tmp_path / "saved.npz"))
        with pytest.raises(ChannelError, match="Reset the vector env first"):
            play(later, 1)
        observations, infos = later.reset(seed=7)
        assert_same(observations, follows[0])
        for key in ("curriculum_task", "curriculum_slot", "curriculum_plan_version"):
            assert_same(infos[key], follows[4][key])
        assert_same(play(later, 200, is_idle=True), expected)
        later.close()


@EACH_GAME
def test_episodes_in_flight_are_played_again_with_the_same_task_and_seed(game: str) -> None:
    first = batch(game, Uniform(equal_lengths(game), seed=4), 4)
    began, infos = first.reset(seed=7)
    play(first, 5, is_idle=True)
    snapshot = first.snapshot()
    expected = [infos["curriculum_task"].tolist()]
    expected += tasks_in_order(first, 200)
    first.close()
    later = batch(game, Uniform(equal_lengths(game), seed=4), 4)
    later.restore(snapshot)
    observations, infos = later.reset(seed=7)
    assert_same(observations, began)
    again = [infos["curriculum_task"].tolist(), *tasks_in_order(later, 205)]
    assert again == expected
    assert len(again) > 2
    later.close()


def tasks_in_order(vec: Any, num_steps: int) -> list[list[str]]:
    """Return what all envs began to play, one list for each time that they began together."""
    begun = []
    for result in play(vec, num_steps, is_idle=True):
        infos = result[4]
        if "curriculum_task" in infos and not (result[2] | result[3]).any():
            begun.append(infos["curriculum_task"].tolist())
    return begun


def test_restoring_needs_no_seed_to_play_the_same() -> None:
    snapshot = None
    seen = []
    for number in range(3):
        vec = batch("hockey", Uniform(equal_lengths("hockey"), seed=4), 4)
        if snapshot is None:
            began = vec.reset()[0]
            snapshot = vec.snapshot()
            seen.append(began)
        else:
            vec.restore(snapshot)
            seen.append(vec.reset()[0])
        vec.close()
        assert number < 3
    assert_same(seen[1], seen[2])
    assert_same(seen[1], seen[0])


def test_a_snapshot_of_other_tasks_is_refused() -> None:
    first = batch("ledge", Uniform(tasks_of("ledge"), seed=4), 3)
    first.reset(seed=0)
    other = batch("ledge", Uniform(tasks_of("ledge", 9), seed=4), 3)
    with pytest.raises(StepladderError):
        other.restore(first.snapshot())
    first.close()
    other.close()


# 7. Flat cost.


@EACH_GAME
@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, SAME_STEP])
def test_once_every_task_is_known_no_step_leaves_compiled_code(
    game: str, mode: AutoresetMode, monkeypatch: pytest.MonkeyPatch
) -> None:
    curriculum = quick_stages(game, mixing=Mixing(min_results=2), threshold=0.0)
    vec = batch(game, curriculum, 16, autoreset_mode=mode)
    vec.reset(seed=0)
    base: Any = vec.unwrapped
    while (base.lessons.known < 0).any():
        play(vec, 20)

    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("a step left compiled code")

    monkeypatch.setattr(Lessons, "answer", never)
    monkeypatch.setattr(type(base), "put", never)
    before = vec.counts.finished
    play(vec, 300)
    assert vec.counts.finished > before + 30
    vec.close()


@pytest.mark.parametrize("kind", ["phased", "evicting", "uniform"])
@EACH_GAME
def test_no_step_leaves_compiled_code_more_than_once(
    game: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    vec = batch(game, CURRICULA[kind](game), 16)
    calls: list[int] = []
    made: list[str] = []
    answer, put = Lessons.answer, type(vec.unwrapped).put
    monkeypatch.setattr(
        Lessons, "answer", lambda self, arrays: calls.append(1) or answer(self, arrays)
    )
    monkeypatch.setattr(
        type(vec.unwrapped), "put", lambda self, task, *rest: made.append(task.name) or put(self, task, *rest)
    )
    vec.reset(seed=0)
    assert len(calls) == 1
    for _ in range(150):
        before = len(calls)
        play(vec, 1, seed=before)
        assert len(calls) <= before + 1
    if kind == "uniform":
        # Each task is made once, however often it is drawn.
        assert len(made) == len(set(made)) <= 12
    vec.close()


def test_a_large_pool_takes_no_memory_before_it_is_played() -> None:
    vec = batch("ledge", Uniform(LedgeLevels(per_stage=20_000), seed=0), 4)
    vec.reset(seed=0)
    play(vec, 5)
    assert (vec.unwrapped.lessons.known >= 0).sum() <= 8  # type: ignore[attr-defined]
    vec.close()


# 8. Nothing swallowed.


def with_broken(game: str, num_broken: int, num_fine: int = 6) -> list[Task]:
    broken = {"hockey": {"mode": "none such"}, "ledge": {"level": "none such"}}[game]
    return tasks_of(game, num_fine) + [
        Task(f"broken {index}", STAGES[0], broken) for index in range(num_broken)
    ]


@EACH_MODE
@EACH_GAME
def test_a_task_that_cannot_be_built_is_quarantined_and_another_is_drawn(
    game: str, mode: AutoresetMode, caplog: pytest.LogCaptureFixture
) -> None:
    curricula = [Uniform(with_broken(game, 3), seed=3) for _ in range(2)]
    ours = batch(game, curricula[0], autoreset_mode=mode, max_failed_share=1.0)
    theirs = singles(game, curricula[1], mode=mode)
    theirs.tracker.host.max_failed_share = 1.0
    assert_same(ours.reset(seed=0), theirs.reset(seed=0))
    assert_same(play(ours, 150), play(theirs, 150))
    names = {each.task for each in curricula[0].quarantined}
    assert names == {"broken 0", "broken 1", "broken 2"}
    for each in curricula[0].quarantined:
        assert "none such" in each.reason or "no tile" in each.reason
    counts = ours.counts
    assert counts.failed >= 3
    assert counts.started == counts.finished + counts.failed + counts.in_flight
    assert "is quarantined" in caplog.text
    ours.close()
    theirs.close()


@EACH_GAME
def test_if_no_task_can_be_built_the_reset_says_so(game: str) -> None:
    for count, match in ((40, "20 tasks in a row|could not be built"), (3, "quarantined|cannot be built|could not be built")):
        curriculum = Uniform(with_broken(game, count)[6:], seed=3)
        vec = batch(game, curriculum, 3)
        with pytest.raises(BuildError, match=match):
            for _ in range(5):
                vec.reset(seed=0)
        vec.close()


def test_after_a_failed_reset_no_env_plays_a_world_that_is_not_its_tasks() -> None:
    """A reset that fails for one env leaves none that plays on in its old world."""
    fine = level_task("fine", EASY)
    curriculum = Uniform([fine] + with_broken("ledge", 30)[6:], seed=1)
    vec = batch("ledge", curriculum, 6, max_failed_share=1.0)
    base: Any = vec.unwrapped
    failed = False
    for _ in range(4):
        try:
            vec.reset(seed=0)
        except BuildError:
            failed = True
        steps = base.runners["steps"]
        states = base.batch.episodes["state"]
        playing = states == 1
        assert (steps[playing] == 0).all()
        assert (base.runners["x"][playing] > 1).all()
    assert failed or vec.counts.failed == 30
    vec.close()


def test_a_phase_with_an_impossible_setting_is_reported() -> None:
    curriculum = Phased(
        tasks_of("hockey", 3),
        seed=0,
        phases=(Phase(name="odd", settings={"opponent": "nobody at all"}),),
    )
    vec = batch("hockey", curriculum, 2)
    with pytest.raises(BuildError, match="cannot be built|could not be built"):
        for _ in range(3):
            vec.reset(seed=0)
    vec.close()


# Settings of each episode.


@EACH_MODE
def test_settings_of_a_phase_hold_for_the_episode_they_were_drawn_for(mode: AutoresetMode) -> None:
    curriculum = phases("hockey")
    vec = batch("hockey", curriculum, 6, autoreset_mode=mode)
    base: Any = vec.unwrapped
    vec.reset(seed=0)
    kinds = {"weak": (1, 0.5), "strong": (1, 10.0), "none": (0, 0.0)}
    seen: Counter[tuple[Any, Any]] = Counter()
    for _ in range(400):
        play(vec, 1)
        for row in np.flatnonzero(base.batch.episodes["state"] == 1).tolist():
            task, record = vec.call("get_curriculum_task")[row], base.shelf.records[row]
            assert (record["opponent"], record["gain"]) == kinds[task.params["opponent"]]
            assert record["puck_speed"] == task.params["puck_speed"]
            seen[vec.call("get_curriculum_phase")[row], task.params["opponent"]] += 1
    assert {("first", "weak"), ("first", "strong"), ("second", "none")} <= set(seen)
    assert curriculum.current_phase == "second"
    vec.close()


# Around it.


def test_a_batch_without_a_curriculum_says_so_when_asked() -> None:
    vec = make_vec(LEDGE, 2)
    with pytest.raises(NotConnectedError, match="curriculum"):
        vec.call("get_curriculum_stage")
    vec.close()


def test_a_curriculum_alone_chooses_the_tasks() -> None:
    vec = batch("ledge", Uniform(tasks_of("ledge"), seed=0), 2)
    for call in (
        partial(vec.unwrapped.set_tasks, tasks_of("ledge")[:2]),  # type: ignore[attr-defined]
        partial(vec.reset, options={"task": tasks_of("ledge")[0]}),
        partial(vec.call, "set_task", tasks_of("ledge")[0]),
    ):
        with pytest.raises(ConfigError, match="curriculum"):
            call()
    vec.close()


def test_plans_cannot_be_pushed_into_a_batch() -> None:
    vec = VECTOR_ENVS["ledge"](2)
    with pytest.raises(ConfigError, match="pushed"):
        CurriculumVectorEnv(vec, Uniform(tasks_of("ledge")), backend="pushed")
    vec.close()


def test_wrappers_of_gymnasium_may_stand_between() -> None:
    inner = RecordEpisodeStatistics(VECTOR_ENVS["ledge"](4))
    curriculum = Uniform(tasks_of("ledge"), seed=0)
    vec = CurriculumVectorEnv(inner, curriculum)
    vec.reset(seed=0)
    num_told = sum(int(step[4]["_episode"].sum()) for step in play(vec, 60) if "episode" in step[4])
    assert num_told == curriculum.num_observed > 5
    vec.close()


def test_a_curriculum_can_be_used_elsewhere_once_its_batch_is_closed() -> None:
    curriculum = Uniform(tasks_of("ledge"), seed=0)
    for num_envs in (2, 3):
        vec = batch("ledge", curriculum, num_envs)
        vec.reset(seed=0)
        play(vec, 40)
        vec.close()
        with pytest.raises(StepladderError, match="closed"):
            vec.step(np.zeros(num_envs, dtype=int))
    assert curriculum.num_observed > 6


def test_a_batch_that_has_played_by_itself_must_be_reset_before_a_curriculum_plays() -> None:
    base = VECTOR_ENVS["ledge"](2, max_episode_steps=5)
    base.reset(seed=0)
    base.step(np.zeros(2, dtype=int))
    vec = CurriculumVectorEnv(base, Uniform(tasks_of("ledge"), seed=0))
    with pytest.raises(StepladderError, match="(?i)reset"):
        for _ in range(6):
            vec.step(np.zeros(2, dtype=int))
    vec.reset(seed=0)
    play(vec, 30)
    vec.close()


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


# In other processes.


@pytest.mark.processes
@pytest.mark.timeout(60)
@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, SAME_STEP])
@EACH_GAME
def test_worker_processes_play_what_the_batch_plays(game: str, mode: AutoresetMode) -> None:
    curricula = [quick_stages(game) for _ in range(2)]
    ours = batch(game, curricula[0], 4, autoreset_mode=mode)
    theirs = make_vec(IDS[game], 4, curriculum=curricula[1], workers=1, autoreset_mode=mode)
    try:
        assert_same(ours.reset(seed=3), theirs.reset(seed=3))
        assert_same(play(ours, 120), play(theirs, 120))
        assert ours.counts == theirs.counts
        assert_same(state_of(curricula[0]), state_of(curricula[1]))
    finally:
        ours.close()
        theirs.close()
