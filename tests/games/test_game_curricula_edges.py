"""The edges of a curriculum over a batch: resuming, what it costs, what cannot be built."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from threading import current_thread
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import RecordEpisodeStatistics

from games.game_cases import (
    DISABLED,
    LEDGE,
    NEXT_STEP,
    SAME_STEP,
    VECTOR_ENVS,
    assert_same,
    level_task,
)
from games.game_curricula import (
    CURRICULA,
    EACH_GAME,
    EACH_MODE,
    STAGES,
    batch,
    phases,
    play,
    quick_stages,
    singles,
    tasks_of,
)
from stepladder import CurriculumVectorEnv, make_vec
from stepladder.curricula import (
    Curriculum,
    LearningProgress,
    Mixed,
    Phase,
    Phased,
    Ramp,
    Staged,
    Uniform,
)
from stepladder.errors import (
    BuildError,
    ChannelError,
    ConfigError,
    NotConnectedError,
    StepladderError,
    TaskError,
)
from stepladder.games.curriculum_link import CurriculumLink
from stepladder.games.ledge.source import LedgeLevels
from stepladder.plans.status import PLAYING
from stepladder.saving.snapshot import Snapshot
from stepladder.tasks import Task

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


def settled_phases(game: str) -> tuple[Phase, ...]:
    """Return phases whose settings leave the length as it is."""
    if game == "ledge":
        settings: list[dict[str, Any]] = [
            {"stage": Mixed(("simple", "simplest"))},
            {"stage": "medium"},
        ]
    else:
        weight = Ramp(start=0.0, end=1.0, ramp_episodes=20)
        settings = [{"puck_speed": Mixed((0.0, 1.0))}, {"closeness_weight": weight}]
    return (
        Phase(name="one", episodes=12, settings=settings[0]),
        Phase(name="two", settings=settings[1]),
    )


RESUMED: dict[str, Callable[[str], Curriculum]] = {
    "uniform": lambda game: Uniform(equal_lengths(game), seed=4),
    "staged": lambda game: Staged(
        equal_lengths(game), seed=4, stages=STAGES, min_episodes=8, threshold=0.0, demotion=None
    ),
    "progress": lambda game: LearningProgress(equal_lengths(game), seed=4),
    "phased": lambda game: Phased(equal_lengths(game), seed=4, phases=settled_phases(game)),
}


@pytest.mark.slow
@EACH_GAME
@pytest.mark.parametrize("kind", RESUMED)
def test_saved_killed_and_loaded_goes_on_as_if_it_had_never_stopped(
    kind: str, game: str, tmp_path: Any
) -> None:
    """Saved between episodes, everything that follows is the same, bit for bit."""
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
    first = batch("hockey", Uniform(equal_lengths("hockey"), seed=4), 4)
    began = first.reset()[0]
    snapshot = first.snapshot()
    first.close()
    for _ in range(2):
        later = batch("hockey", Uniform(equal_lengths("hockey"), seed=4), 4)
        later.restore(snapshot)
        assert_same(later.reset()[0], began)
        later.close()


def test_a_snapshot_of_other_tasks_is_refused() -> None:
    first = batch("ledge", Uniform(tasks_of("ledge"), seed=4), 3)
    first.reset(seed=0)
    other = batch("ledge", Uniform(tasks_of("ledge", 9), seed=4), 3)
    with pytest.raises(StepladderError):
        other.restore(first.snapshot())
    first.close()
    other.close()


@EACH_MODE
def test_records_that_an_interruption_kept_from_being_collected_are_not_lost(
    mode: AutoresetMode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C after the envs have stepped and before the curriculum has learnt from it."""
    curriculum = Uniform(tasks_of("ledge"), seed=2)
    vec = batch("ledge", curriculum, 8, autoreset_mode=mode)
    base: Any = vec.unwrapped
    vec.reset(seed=0)
    num_ended = 0
    collect = vec.tracker.collect

    def interrupted(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    for number in range(60):
        if number % 5 == 0:
            monkeypatch.setattr(vec.tracker, "collect", interrupted)
        try:
            vec.step(np.full(8, 2))
        except KeyboardInterrupt:
            monkeypatch.setattr(vec.tracker, "collect", collect)
        ended = base.batch.has_ended.copy()
        num_ended += int(ended.sum())
        if mode is DISABLED and ended.any():
            monkeypatch.setattr(vec.tracker, "collect", collect)
            vec.reset(options={"reset_mask": ended})
    monkeypatch.setattr(vec.tracker, "collect", collect)
    vec.close()
    counts = vec.counts
    assert counts.finished == curriculum.num_observed == num_ended > 30
    assert counts.started == counts.finished + counts.aborted + counts.in_flight


# 7. Flat cost.


@EACH_GAME
@pytest.mark.parametrize("mode", [NEXT_STEP, SAME_STEP])
def test_once_every_task_is_known_no_step_leaves_compiled_code(
    game: str, mode: AutoresetMode, monkeypatch: pytest.MonkeyPatch
) -> None:
    curriculum = quick_stages(game, threshold=0.0)
    vec = batch(game, curriculum, 16, autoreset_mode=mode)
    vec.reset(seed=0)
    base: Any = vec.unwrapped
    while (base.link.arrays()["known"] < 0).any():
        play(vec, 20)

    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("a step left compiled code")

    monkeypatch.setattr(CurriculumLink, "prepare_rows", never)
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
    curriculum: Any = CURRICULA[kind](game)
    vec = batch(game, curriculum, 16)
    calls: list[int] = []
    made: list[str] = []
    answer, put = CurriculumLink.prepare_rows, type(vec.unwrapped).put
    monkeypatch.setattr(
        CurriculumLink, "prepare_rows", lambda self, arrays: calls.append(1) or answer(self, arrays)
    )
    monkeypatch.setattr(
        type(vec.unwrapped),
        "put",
        lambda self, task, *rest: made.append(task.name) or put(self, task, *rest),
    )
    vec.reset(seed=0)
    assert len(calls) == 1
    for _ in range(150):
        before = len(calls)
        play(vec, 1, seed=before)
        assert len(calls) <= before + 1
    # Each task is made once for each time that it is in the pool, however often it is drawn.
    if kind == "uniform":
        assert len(made) == len(set(made)) <= 12
    elif kind == "evicting":
        assert len(made) <= curriculum.num_evicted + curriculum.pool.num_slots
    vec.close()


@EACH_GAME
def test_tasks_made_by_several_threads_are_those_made_by_one(
    game: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = type(batch(game, Uniform(tasks_of(game), seed=0), 1).unwrapped)
    put, makers = kind.put, set[str]()

    def noted(self: Any, task: Task, *rest: Any) -> None:
        makers.add(current_thread().name)
        put(self, task, *rest)

    monkeypatch.setattr(kind, "put", noted)
    trajectories = []
    for num_threads in (1, 3):
        makers.clear()
        curriculum = Uniform(with_broken(game, 3, 24), seed=3)
        vec = batch(game, curriculum, 64, num_threads=num_threads, max_failed_share=1.0)
        first = vec.reset(seed=0)
        assert (makers == {"MainThread"}) == (num_threads == 1)
        trajectories.append((first, play(vec, 60)))
        assert {each.task for each in curriculum.quarantined} == {f"broken {n}" for n in range(3)}
        vec.close()
    assert_same(*trajectories)


def test_a_large_pool_takes_no_memory_before_it_is_played() -> None:
    vec = batch("ledge", Uniform(LedgeLevels(per_stage=20_000), seed=0), 4)
    vec.reset(seed=0)
    play(vec, 5)
    assert (vec.unwrapped.link.arrays()["known"] >= 0).sum() <= 8  # type: ignore[attr-defined]
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
        assert "none such" in each.reason or "not a tile" in each.reason
    counts = ours.counts
    assert counts.failed >= 3
    assert counts.started == counts.finished + counts.failed + counts.in_flight
    assert "is quarantined" in caplog.text
    ours.close()
    theirs.close()


@EACH_GAME
@pytest.mark.parametrize(
    ("num_tasks", "match"), [(40, "20 draws could not be built"), (3, "cannot be built")]
)
def test_if_no_task_can_be_built_the_reset_says_so(game: str, num_tasks: int, match: str) -> None:
    curriculum = Uniform(with_broken(game, num_tasks)[6:], seed=3)
    vec = batch(game, curriculum, 3)
    with pytest.raises(BuildError, match=match):
        vec.reset(seed=0)
    vec.close()


def test_after_a_failed_reset_no_env_plays_on_in_a_world_that_is_not_its_tasks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tasks = [level_task(f"task {index}", time_limit=50 + index) for index in range(300)]
    vec = batch("ledge", Uniform(tasks, seed=1), 6, max_failed_share=1.0)
    base: Any = vec.unwrapped
    vec.reset(seed=0)
    play(vec, 5)
    place = CurriculumLink._place

    def refuse_env_three(self: CurriculumLink, draw: Any, env_index: int) -> None:
        if env_index == 3:
            raise TaskError("not here")
        place(self, draw, env_index)

    monkeypatch.setattr(CurriculumLink, "_place", refuse_env_three)
    with pytest.raises(BuildError, match=r"20 tasks in a row.*not here"):
        vec.reset()
    monkeypatch.undo()
    play(vec, 1)
    assert (base.batch.episodes["state"] == PLAYING).all()
    assert (base.runners["steps"] <= 1).all()
    for row, task in enumerate(vec.call("get_curriculum_task")):
        assert base.playing.records["time_limit"][row] == task.params["time_limit"]
    counts = vec.counts
    assert counts.failed == 20
    assert counts.started == counts.finished + counts.aborted + counts.failed + counts.in_flight
    vec.close()


def test_a_phase_with_an_impossible_setting_is_reported() -> None:
    curriculum = Phased(
        tasks_of("hockey", 3),
        seed=0,
        phases=(Phase(name="odd", settings={"opponent": "nobody at all"}),),
    )
    vec = batch("hockey", curriculum, 2)
    with pytest.raises(BuildError, match="cannot be built"):
        vec.reset(seed=0)
    assert "nobody at all" in curriculum.quarantined[0].reason
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
            task, record = vec.call("get_curriculum_task")[row], base.playing.records[row]
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
    base = VECTOR_ENVS["ledge"](2, time_limit=5)
    base.reset(seed=0)
    base.step(np.zeros(2, dtype=int))
    vec = CurriculumVectorEnv(base, Uniform(tasks_of("ledge"), seed=0))
    with pytest.raises(StepladderError, match="before reset"):
        play(vec, 1)
    vec.reset(seed=0)
    play(vec, 30)
    vec.close()
