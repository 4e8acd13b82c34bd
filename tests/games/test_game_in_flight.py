"""With a curriculum too, games saved in the middle go on in the middle, bit for bit."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from games.game_cases import DISABLED, NEXT_STEP, SAME_STEP, assert_same, level_task, random_actions
from games.game_curricula import ROOM, batch, evicting, quick_stages, singles, tasks_of
from stepladder import Snapshot
from stepladder.curricula import Curriculum, Mixed, Phase, Phased, Ramp, Uniform
from stepladder.errors import ChannelError, EnvError, SnapshotError, StepladderError
from stepladder.games.ledge.source import LedgeLevels
from stepladder.tasks import Task

NUM_STEPS = 90
NUM_ENVS = 40
"""Enough for two threads at either game."""


def hockey_phases(opponents: tuple[str, ...]) -> Phased:
    """Return phases whose games differ in everything that a setting can change."""
    drawn = {
        "mode": Mixed(("NORMAL", "TRAIN_SHOOTING", "TRAIN_DEFENSE")),
        "opponent": Mixed(opponents),
        "time_limit": Mixed((9, 17, 30)),
        "closeness_weight": Ramp(start=2.0, end=0.0, ramp_episodes=60),
    }
    return Phased(
        tasks_of("hockey"),
        seed=5,
        phases=(
            Phase(name="first", episodes=70, settings=drawn),
            Phase(name="second", mixture={"near": 1.0, "far": 2.0}, settings={"time_limit": 12}),
        ),
    )


def with_impossible_tasks(game: str) -> Uniform:
    """Return so many that some are found before a snapshot is made and others after it."""
    broken = [Task(f"broken {index}", params={"time_limit": "soon"}) for index in range(60)]
    return Uniform([*tasks_of(game, 120), *broken], seed=5)


def levels() -> Curriculum:
    return Uniform(LedgeLevels(("simplest", "mine_heavy"), per_stage=4), seed=5)


Case = tuple[str, Callable[[], Curriculum], dict[str, Any]]
CASES: dict[str, Case] = {
    "hockey, one player": ("hockey", partial(hockey_phases, ("weak", "strong", "none")), {}),
    "hockey, both players": (
        "hockey",
        partial(hockey_phases, ("weak", "caller", "caller:newest")),
        {"players": "both", "actions": "discrete", "fineness": 3},
    ),
    "hockey, from the table": ("hockey", partial(quick_stages, "hockey"), {"time_limit": 20}),
    "ledge, stages": ("ledge", partial(quick_stages, "ledge"), {"shaping": True}),
    "ledge, eviction": ("ledge", partial(evicting, "ledge"), {}),
    "ledge, made levels": ("ledge", levels, {"time_limit": 25}),
    "ledge, impossible tasks": ("ledge", partial(with_impossible_tasks, "ledge"), {}),
}


def make(case: str, **settings: Any) -> Any:
    game, curriculum, env_kwargs = CASES[case]
    return batch(
        game, curriculum(), NUM_ENVS, max_failed_share=1.0, env_kwargs=env_kwargs, **settings
    )


def moves(vec: Any) -> list[Any]:
    """Return actions for all steps; runners mostly run to the right, where the door is."""
    rng = np.random.default_rng(3)
    drawn = [random_actions(vec, rng) for _ in range(NUM_STEPS)]
    if isinstance(drawn[0], np.ndarray) and drawn[0].ndim == 1:
        drawn = [np.where(rng.random(NUM_ENVS) < 0.6, 2, actions) for actions in drawn]
    return drawn


def step(vec: Any, actions: Any) -> list[Any]:
    """Step, and reset what has ended if nobody else does."""
    results = [vec.step(actions)]
    ended = results[0][2] | results[0][3]
    if vec.metadata["autoreset_mode"] is DISABLED and ended.any():
        results.append(vec.reset(options={"reset_mask": ended}))
    return results


def play(vec: Any, actions: list[Any]) -> list[Any]:
    return [step(vec, each) for each in actions]


def awkward_moments(played: list[Any]) -> dict[str, int]:
    """Return numbers of steps after which to save."""
    # Late enough that stages, phases and tasks have changed before.
    ended = [index for index, results in enumerate(played) if (results[0][2] | results[0][3]).any()]
    end = next(index for index in ended if index >= NUM_STEPS // 3)
    return {"after the reset": 0, "when some have ended": end + 1, "the step after": end + 2}


def what_is_known(vec: Any) -> Any:
    """Return all that a vector env knows: games, mailboxes, curriculum, counts."""
    counts, snapshot = vec.counts, vec.snapshot(in_flight=True)
    assert counts.started == counts.finished + counts.aborted + counts.failed + counts.in_flight
    base = vec.unwrapped
    shown = base.batch.has_ended.copy(), base.batch.has_begun.copy(), base.extras.copy()
    tasks = [task.to_json() for task in base.call("task")]
    counted = counts, vec.staleness, vec.check_agreement()
    return snapshot.state, snapshot.arrays, counted, shown, tasks


def check_it_goes_on(case: str, tmp_path: Path, threads: tuple[int, int], mode: Any) -> None:
    whole = make(case, autoreset_mode=mode, num_threads=threads[0])
    actions = moves(whole)
    seen = [whole.reset(seed=7)[0]]
    expected = play(whole, actions)
    seen += [results[-1][0] for results in expected]
    known = what_is_known(whole)
    assert whole.counts.finished > NUM_ENVS

    saving = make(case, autoreset_mode=mode, num_threads=threads[0])
    saving.reset(seed=7)
    moments = awkward_moments(expected)
    then: dict[int, Any] = {}
    for index, action in enumerate(actions):
        if index in moments.values():
            saving.snapshot(in_flight=True).save(tmp_path / f"{index}.npz")
            then[index] = what_is_known(saving)
        assert_same(step(saving, action), expected[index])
    assert_same(what_is_known(saving), known)

    for moment in moments.values():
        later = make(case, autoreset_mode=mode, num_threads=threads[1])
        assert later.continues_in_flight
        assert later.restore(Snapshot.load(tmp_path / f"{moment}.npz"), in_flight=True)
        assert_same(later.unwrapped.buffers.observations, seen[moment])
        assert_same(what_is_known(later), then[moment])
        assert_same(play(later, actions[moment:]), expected[moment:])
        assert_same(what_is_known(later), known)
        later.close()
    whole.close()
    saving.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "threads"),
    [(case, ((1, 2), (2, 1))[number % 2]) for number, case in enumerate(CASES)],
)
def test_games_of_a_curriculum_go_on_as_if_nothing_had_happened(
    case: str, threads: tuple[int, int], tmp_path: Path
) -> None:
    check_it_goes_on(case, tmp_path, threads, NEXT_STEP)


@pytest.mark.parametrize("mode", [SAME_STEP, DISABLED])
@pytest.mark.parametrize("case", ["hockey, both players", "ledge, eviction"])
def test_games_go_on_in_the_other_autoreset_modes(case: str, mode: Any, tmp_path: Path) -> None:
    check_it_goes_on(case, tmp_path, (1, 1), mode)


def test_a_vector_env_that_played_something_else_goes_on_alike() -> None:
    case = "ledge, impossible tasks"
    first, other = make(case), make(case)
    actions = moves(first)
    first.reset(seed=7)
    other.reset(seed=8)
    play(first, actions[:20])
    play(other, actions[:31])
    other.unwrapped.send(actions[0])
    assert other.restore(first.snapshot(in_flight=True), in_flight=True)
    with pytest.raises(EnvError, match="recv was called without send"):
        other.unwrapped.recv()
    assert_same(play(other, actions[20:]), play(first, actions[20:]))
    assert_same(what_is_known(other), what_is_known(first))
    first.close()
    other.close()


def test_a_reset_in_the_middle_gives_games_up_as_it_would_have() -> None:
    first, later = (batch("ledge", Uniform(tasks_of("ledge"), seed=4), 3) for _ in range(2))
    first.reset(seed=7)
    first.step([2, 2, 2])
    later.restore(first.snapshot(in_flight=True), in_flight=True)
    mask = np.array([True, False, True])
    for options in ({"reset_mask": mask}, None):
        assert_same(later.reset(options=options), first.reset(options=options))
        assert_same(later.step([2, 2, 2]), first.step([2, 2, 2]))
    assert later.counts == first.counts
    assert first.counts.aborted == 5
    first.close()
    later.close()


def test_a_task_that_cannot_be_built_is_quarantined_in_the_very_next_step() -> None:
    """The env that ended before the snapshot draws it after, in a step in which nothing ends."""
    tasks = [level_task("far", ROOM, time_limit=9), Task("broken")]
    for seed in range(40):
        first, later = (batch("ledge", Uniform(tasks, seed=seed), 1) for _ in range(2))
        first.reset(seed=7)
        for _ in range(9):
            first.step([0])
        assert first.counts.finished == 1
        later.restore(first.snapshot(in_flight=True), in_flight=True)
        was_known = bool(first.curriculum.quarantined)
        assert_same(later.step([0]), first.step([0]))
        assert_same(what_is_known(later), what_is_known(first))
        is_found_now = bool(later.curriculum.quarantined) and not was_known
        first.close()
        later.close()
        if is_found_now:
            return
    pytest.fail("no seed has drawn the broken task second")


def test_a_snapshot_with_games_can_still_be_played_again_from_the_beginning() -> None:
    first, later = (batch("hockey", Uniform(tasks_of("hockey"), seed=4), 4) for _ in range(2))
    began = first.reset(seed=7)[0]
    first.step(np.ones((4, 4)))
    assert not later.restore(first.snapshot(in_flight=True))
    with pytest.raises(ChannelError, match="Reset the vector env first"):
        later.step(np.ones((4, 4)))
    assert_same(later.reset()[0], began)
    assert later.counts == first.counts
    first.close()
    later.close()


def test_a_snapshot_without_games_is_played_again_though_more_was_asked() -> None:
    first, later = (batch("ledge", Uniform(tasks_of("ledge"), seed=4), 4) for _ in range(2))
    began = first.reset(seed=7)[0]
    first.step([2, 2, 2, 2])
    assert not later.restore(first.snapshot(), in_flight=True)
    assert_same(later.reset()[0], began)
    first.close()
    later.close()


def test_single_games_cannot_go_on_in_the_middle_and_say_so() -> None:
    first, later = (
        singles("ledge", Uniform(tasks_of("ledge"), seed=4), 2, mode=NEXT_STEP) for _ in range(2)
    )
    assert not first.continues_in_flight
    began = first.reset(seed=7)[0]
    first.step([2, 2])
    assert not later.restore(first.snapshot(in_flight=True), in_flight=True)
    assert_same(later.reset(seed=7)[0], began)
    first.close()
    later.close()


def test_a_snapshot_from_before_the_first_reset_asks_for_it() -> None:
    first, later = (batch("ledge", Uniform(tasks_of("ledge"), seed=4), 2) for _ in range(2))
    assert not later.restore(first.snapshot(in_flight=True), in_flight=True)
    assert_same(later.reset()[0], first.reset()[0])
    assert later.counts == first.counts
    first.close()
    later.close()


def changed(snapshot: Snapshot, **games: Any) -> Snapshot:
    envs = snapshot.state["envs"]
    envs = {**envs, "games": {**envs["games"], **games}}
    return Snapshot({**snapshot.state, "envs": envs}, snapshot.arrays)


def batch_of_four() -> Snapshot:
    other = batch("ledge", Uniform(tasks_of("ledge"), seed=4), 4)
    snapshot = other.snapshot(in_flight=True)
    other.close()
    return snapshot


def without(snapshot: Snapshot, name: str) -> Snapshot:
    arrays = {key: array for key, array in snapshot.arrays.items() if key != name}
    return Snapshot(snapshot.state, arrays)


@pytest.mark.parametrize(
    ("other_settings", "damage", "words"),
    [
        ({"time_limit": 9}, lambda saved: saved, "tasks.time_limit was 9 and is now None"),
        ({"shaping": True}, lambda saved: saved, "shaping was True and is now False"),
        ({}, lambda saved: without(saved, "envs/games/game/runners"), "'game/runners'.*missing"),
        ({}, lambda saved: without(saved, "envs/seeds"), "'seeds'.*missing"),
        ({}, lambda saved: without(saved, "channel/heads"), "'heads'.*missing"),
        ({}, lambda _: batch_of_four(), "made with 4 envs and this channel has 3"),
        ({}, lambda _: 5, "expected a Snapshot; got 5"),
    ],
)
def test_games_that_do_not_fit_are_refused_and_nothing_changes(
    other_settings: dict[str, Any], damage: Any, words: str
) -> None:
    vec, twin = (batch("ledge", Uniform(tasks_of("ledge"), seed=4), 3) for _ in range(2))
    other = batch("ledge", Uniform(tasks_of("ledge"), seed=4), 3, env_kwargs=other_settings)
    for each, seed in ((vec, 0), (twin, 0), (other, 1)):
        each.reset(seed=seed)
    with pytest.raises(SnapshotError, match=words):
        vec.restore(damage(other.snapshot(in_flight=True)), in_flight=True)
    for _ in range(30):
        assert_same(vec.step([2, 1, 5]), twin.step([2, 1, 5]))
    assert vec.counts == twin.counts
    for each in (vec, twin, other):
        each.close()


def test_other_defaults_of_hockey_tasks_are_refused() -> None:
    tasks = [Task("a"), Task("b")]
    first = batch("hockey", Uniform(tasks), 2, env_kwargs={"touch_weight": np.float64(1.5)})
    other = batch("hockey", Uniform(tasks), 2)
    first.reset(seed=0)
    with pytest.raises(StepladderError, match="touch_weight was 1\\.5 and is now 'absent'"):
        other.restore(first.snapshot(in_flight=True), in_flight=True)
    first.close()
    other.close()


@pytest.mark.parametrize("field", ["aborted", "closed"])
def test_a_channel_that_does_not_fit_the_games_is_refused(field: str) -> None:
    vec = batch("hockey", Uniform(tasks_of("hockey"), seed=4), 3)
    vec.reset(seed=0)
    saved = vec.snapshot(in_flight=True)
    heads = saved.arrays["channel/heads"].copy()
    heads[field][1] += 1
    damaged = Snapshot(saved.state, {**saved.arrays, "channel/heads": heads})
    with pytest.raises(SnapshotError, match=r"env 1|closed\[1\]"):
        vec.restore(damaged, in_flight=True)
    vec.step(random_actions(vec, np.random.default_rng(0)))
    vec.close()
