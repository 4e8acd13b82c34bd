"""Edits of levels: small, solvable, the same for a seed; and a curriculum that plays them."""

from typing import Any

import numpy as np
import pytest

from games.game_cases import NEXT_STEP, assert_same
from games.game_curricula import batch, play, singles
from stepladder.curricula import LevelReplay
from stepladder.errors import SnapshotError
from stepladder.games.ledge import edits
from stepladder.games.ledge.edits import MAX_MOVE, edit_level
from stepladder.games.ledge.generators import generate
from stepladder.games.ledge.held_out import fingerprint, held_out
from stepladder.games.ledge.level import STAGES, Level
from stepladder.games.ledge.physics import SUCCEEDED
from stepladder.games.ledge.planner import replay, solve
from stepladder.games.ledge.source import LedgeLevels, level_of
from stepladder.games.ledge.tiles import PLATFORM, WALL
from stepladder.games.ledge.world import pack
from stepladder.saving.snapshot import Snapshot
from stepladder.tasks import EditedSource

ROOM = Level.parse("#######\n#.....#\n#.....#\n#@.S.D#\n#######\n", "room")


def assert_solvable(level: Level) -> None:
    plan = solve(level)
    assert plan is not None
    assert replay(level, plan.actions) == (SUCCEEDED, plan.num_steps)


@pytest.mark.parametrize("stage", STAGES)
def test_every_edit_of_an_edit_is_a_small_change_that_stays_solvable(stage: str):
    for seed in range(4):
        level = generate(stage, seed)
        for change in range(6):
            edited = edit_level(level, 100 * seed + change)
            assert_solvable(edited)
            pack(edited)
            assert Level.parse(edited.text, edited.name) == edited
            differs = edited.tiles != level.tiles
            # A ledge of twelve tiles, shifted by one.
            assert differs.sum() <= 24
            assert differs.any() or edited.start != level.start
            assert not differs[[0, -1]].any()
            assert not differs[:, [0, -1]].any()
            assert edited.time_limit == level.time_limit
            for before, after in (
                (level.start, edited.start),
                (level.switch, edited.switch),
                (level.door, edited.door),
            ):
                assert max(abs(before[0] - after[0]), abs(before[1] - after[1])) <= MAX_MOVE
            level = edited


@pytest.mark.slow
def test_every_kind_of_change_happens():
    level = generate("mine_heavy", 3)
    kinds: set[str] = set()
    for seed in range(120):
        edited = edit_level(level, seed)
        count = {
            code: (edited.tiles == code).sum() - (level.tiles == code).sum() for code in (1, 2, 3)
        }
        moved = [
            name
            for name in ("start", "switch", "door")
            if getattr(edited, name) != getattr(level, name)
        ]
        differs = int((edited.tiles != level.tiles).sum())
        if moved:
            kinds.add(moved[0])
        elif sum(count.values()):
            kinds.add("added" if sum(count.values()) > 0 else "removed")
        else:
            kinds.add("mine" if (edited.tiles == 3)[edited.tiles != level.tiles].any() else "ledge")
        assert differs or moved
    assert kinds == {"start", "switch", "door", "added", "removed", "mine", "ledge"}


def test_starts_and_doors_stand_on_ground():
    for seed in range(200):
        edited = edit_level(ROOM, seed)
        for name in ("start", "door"):
            row, column = getattr(edited, name)
            if (row, column) != getattr(ROOM, name):
                assert edited.tiles[row + 1, column] in (WALL, PLATFORM)


def test_the_same_seed_gives_the_same_edit_as_ever_and_another_seed_another():
    level = generate("simple", 5)
    assert [edit_level(level, seed).text for seed in range(9)] == [
        edit_level(level, seed).text for seed in range(9)
    ]
    assert len({edit_level(level, seed).text for seed in range(30)}) > 20
    # Stored: a change of this is a change of LedgeLevels.edit_version.
    assert edit_level(ROOM, 1).rows == ["#######", "#.....#", "#..S..#", "#@...D#", "#######"]


def test_a_level_without_any_change_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(edits, "solve", lambda level: None)
    assert edit_level(ROOM, 3) is ROOM


def test_an_edit_never_gives_a_held_out_level(monkeypatch: pytest.MonkeyPatch):
    # Whatever the first choice is, is held out; so another one is made.
    first = edit_level(ROOM, 3)
    monkeypatch.setattr(edits, "held_out_fingerprints", lambda: {fingerprint(first)})
    again = edit_level(ROOM, 3)
    assert again.rows not in (first.rows, ROOM.rows)
    assert held_out("simplest")


# As tasks.


def test_edited_tasks_hold_their_level_and_keep_stage_and_generator():
    source = EditedSource(LedgeLevels(("simplest", "medium"), 5), num_changes=3)
    edit = source.child(source.child(7, 4), 30)
    task = source.get(edit)
    assert task.label == source.label(edit) == "medium"
    assert task.name == f"{source.name(7)}~4u"
    own = source.get(7).params
    assert {name: task.params[name] for name in own} == own
    level = level_of(task)
    assert_solvable(level)
    assert level.rows != level_of(source.get(7)).rows
    assert level.rows == level_of(source.get(edit)).rows


def accel(seed: int = 5) -> LevelReplay:
    """Make a curriculum that replaces tasks after every second play."""
    return LevelReplay(
        LedgeLevels(("simplest",), 8),
        seed=seed,
        capacity=6,
        editing=0.9,
        eviction_plays=2,
        eviction_percentile=0.9,
        score_weight=1.0,
        changes_per_edit=2,
    )


SHORT = {"env_kwargs": {"time_limit": 12}}


def test_a_batch_plays_the_edits_that_single_games_play():
    curricula = [accel(), accel()]
    ours = batch("ledge", curricula[0], **SHORT)
    theirs = singles("ledge", curricula[1], mode=NEXT_STEP, time_limit=12)
    assert_same(ours.reset(seed=3), theirs.reset(seed=3))
    for our, their in zip(play(ours, 150), play(theirs, 150), strict=True):
        assert_same(our, their)
    assert curricula[0].num_edits >= 3
    assert curricula[0].pool.task_ids.tolist() == curricula[1].pool.task_ids.tolist()


def test_games_of_edits_go_on_from_a_snapshot_as_if_nothing_had_happened(tmp_path: Any):
    vec = batch("ledge", accel(), **SHORT)
    vec.reset(seed=3)
    play(vec, 100)
    path = vec.snapshot(in_flight=True).save(tmp_path / "state.npz")
    rest = play(vec, 60, seed=1)
    other = accel()
    again = batch("ledge", other, **SHORT)
    again.reset(seed=9)
    assert again.restore(Snapshot.load(path), in_flight=True)
    assert other.num_edits >= 2
    for one, same in zip(rest, play(again, 60, seed=1), strict=True):
        assert_same(one, same)
    for env_index in range(5):
        assert vec.unwrapped.task_of(env_index) == again.unwrapped.task_of(env_index)


def test_a_saved_draw_of_an_edit_that_cannot_be_is_refused():
    vec = batch("ledge", accel(), **SHORT)
    vec.reset(seed=3)
    play(vec, 100)
    snapshot = vec.snapshot()
    (name,) = [name for name in snapshot.arrays if name.endswith("heads")]
    heads = snapshot.arrays[name].copy()
    heads["draw"]["task_id"][2] = 2**60 + 3
    before = np.array([vec.unwrapped.task_of(env_index).name for env_index in range(5)])
    with pytest.raises(SnapshotError, match="no edit"):
        vec.restore(Snapshot(snapshot.state, {**snapshot.arrays, name: heads}))
    after = np.array([vec.unwrapped.task_of(env_index).name for env_index in range(5)])
    assert np.array_equal(before, after)
