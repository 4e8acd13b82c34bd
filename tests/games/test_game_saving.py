"""Games saved in the middle go on in the middle, bit for bit, in another process too."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from game_cases import assert_same

from stepladder import Snapshot, Task, Uniform, make_vec
from stepladder.errors import ConfigError, EnvError, SnapshotError

CASES = {
    "hockey": ("stepladder/Hockey-v0", {"mode": "TRAIN_DEFENSE"}),
    "hockey both": ("stepladder/Hockey-v0", {"players": "both", "mode": "TRAIN_SHOOTING"}),
    "ledge": ("stepladder/Ledge-v0", {"shaping": True, "time_limit": 40}),
}
MODES = ["NextStep", "SameStep"]


def make(case: str, mode: str = "NextStep", num_envs: int = 5, **more: Any) -> Any:
    env_id, settings = CASES[case]
    return make_vec(env_id, num_envs, autoreset_mode=mode, env_kwargs={**settings, **more})


def drawn_actions(envs: Any, num_steps: int, seed: int = 0) -> list[Any]:
    envs.action_space.seed(seed)
    return [envs.action_space.sample() for _ in range(num_steps)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", CASES)
def test_a_restored_batch_goes_on_as_if_nothing_had_happened(
    case: str, mode: str, tmp_path: Path
) -> None:
    envs = make(case, mode)
    envs.reset(seed=4)
    actions = drawn_actions(envs, 240)
    for action in actions[:50]:
        envs.step(action)
    path = envs.snapshot().save(tmp_path / "games.npz")
    expected = [envs.step(action) for action in actions[50:]]

    # One that has played something else, and one that was never reset.
    used, fresh = make(case, mode), make(case, mode, num_threads=2)
    used.reset(seed=99)
    used.step(actions[0])
    for other in (used, fresh):
        other.restore(Snapshot.load(path))
        for action, result in zip(actions[50:], expected, strict=True):
            assert_same(other.step(action), result)


def test_what_was_seen_last_is_restored_for_the_policy(tmp_path: Path) -> None:
    envs = make("ledge")
    envs.reset(seed=0)
    seen, *_ = envs.step(np.full(5, 2))
    other = make("ledge")
    other.restore(envs.snapshot())
    assert_same(other.buffers.observations, seen)


def test_envs_saved_before_their_first_reset_still_wait_for_it() -> None:
    envs, other = make("ledge"), make("ledge")
    other.reset(seed=0)
    other.step(np.full(5, 2))
    other.restore(envs.snapshot())
    with pytest.raises(EnvError, match="before reset"):
        other.step(np.full(5, 2))


def test_a_task_that_waits_for_its_reset_still_waits_after_a_restore() -> None:
    envs = make("ledge", num_envs=2)
    envs.reset(seed=0)
    other_level = Task("other", params={"stage": "simpler"}, seed=5)
    envs.set_tasks([other_level], [1])
    twin = make("ledge", num_envs=2)
    twin.restore(envs.snapshot())
    assert [task.name for task in twin.tasks] == [task.name for task in envs.tasks]
    for vec in (envs, twin):
        vec.reset()
    assert twin.tasks == envs.tasks
    assert twin.tasks[1] == other_level
    assert_same(twin.step(np.array([2, 5])), envs.step(np.array([2, 5])))


SCRIPT = """
import sys
import numpy as np
from stepladder import Snapshot, make_vec
envs = make_vec("stepladder/Hockey-v0", 3, env_kwargs={"mode": "TRAIN_DEFENSE"})
envs.restore(Snapshot.load(sys.argv[1]))
for _ in range(30):
    seen, rewards, *_ = envs.step(np.zeros((3, 4)))
sys.stdout.write(seen.tobytes().hex() + rewards.tobytes().hex())
"""


@pytest.mark.processes
@pytest.mark.timeout(90)
def test_games_go_on_alike_in_another_process(tmp_path: Path) -> None:
    envs = make("hockey", num_envs=3)
    envs.reset(seed=2)
    for _ in range(10):
        envs.step(np.zeros((3, 4)))
    path = envs.snapshot().save(tmp_path / "games.npz")
    command = [sys.executable, "-c", SCRIPT, str(path)]
    said = subprocess.run(command, capture_output=True, text=True, timeout=80, check=True).stdout
    for _ in range(30):
        seen, rewards, *_ = envs.step(np.zeros((3, 4)))
    assert said == seen.tobytes().hex() + rewards.tobytes().hex()


def damaged(snapshot: Snapshot, **changes: Any) -> Snapshot:
    return Snapshot({**snapshot.state, **changes}, snapshot.arrays)


@pytest.mark.parametrize(
    ("make_other", "words"),
    [
        (lambda: make("hockey").snapshot(), "game was 'HockeyVectorEnv'"),
        (lambda: make("ledge", num_envs=4).snapshot(), "num_envs was 4 and is now 5"),
        (lambda: make("ledge", shaping=False).snapshot(), "shaping was False"),
        (lambda: damaged(make("ledge").snapshot(), playing=[0]), "tasks of 1 envs; expected 5"),
        (
            lambda: damaged(make("ledge").snapshot(), tasks=[{}]),
            "tasks in the snapshot are damaged",
        ),
        (lambda: damaged(make("ledge").snapshot(), waiting={"9": 0}), "expected 5"),
        (
            lambda: Snapshot(make("ledge").snapshot().state, {}),
            "array 'batch/episodes' of the snapshot: is missing",
        ),
        (lambda: 5, "expected a Snapshot; got 5"),
    ],
)
def test_a_snapshot_that_does_not_fit_is_refused_and_changes_nothing(
    make_other: Any, words: str
) -> None:
    envs, twin = make("ledge"), make("ledge")
    for vec in (envs, twin):
        vec.reset(seed=0)
    with pytest.raises(SnapshotError, match=words):
        envs.restore(make_other())
    for action in drawn_actions(envs, 60):
        assert_same(envs.step(action), twin.step(action))


@pytest.mark.parametrize(
    ("name", "where", "value", "words"),
    [
        ("playing/records", "start_x", 1e-320, "the start of row 1 is at x 9.99989e-321"),
        ("playing/records", "start_y", 39.5, "the start of row 1 is at .* expected a tile of air"),
        ("playing/records", "start_x", 5.25, r"start_x\[1\] is 5.25; expected 5.5"),
        ("playing/records", "door_x", 4.5, "the door of row 1 is at .* the only tile of door"),
        ("playing/records", "width", 3, "the start of row 1 .* of a level of 3 x 7 tiles"),
        ("playing/tiles", (0, 20, 30), 0, r"value\[1, 20, 30\] is 0; expected 1"),
        ("playing/records", "time_limit", 0, r"time_limit\[1\] is 0; expected at least 1"),
        ("playing/records", "way", 3.0, r"way\[1\] is 3.0; expected 10"),
        ("playing/to_door", (0, 0, 0), 7, r"value\[1, 0, 0\] is 7; expected 65535"),
        ("playing/tiles", (0, 0, 0), 6, ".* expected an integer from 0 to 5"),
        ("game/runners", "x", 0.0, "runner 1 is at x 0, y .* and overlaps a wall"),
        ("game/runners", "y", -0.0, "runner 1 is at x .*, y -0 and overlaps a wall"),
        ("game/runners", "x", 10.5, r"x\[1\] is 10.5; expected a finite number from 0 to 10"),
        ("game/runners", "steps", 40, r"steps\[1\] is 40; expected an integer from 0 to 39"),
    ],
)
def test_a_runner_or_a_level_that_no_step_leads_to_is_refused(
    name: str, where: str | tuple[int, ...], value: float, words: str
) -> None:
    envs = make("ledge")
    envs.reset(seed=0)
    saved = envs.snapshot()
    arrays = {key: array.copy() for key, array in saved.arrays.items()}
    assert arrays["playing/records"]["width"][1] == 10
    row: Any = arrays[name][1:2]
    row[where] = value
    with pytest.raises(SnapshotError, match=f"array '{name}' of the snapshot: {words}"):
        envs.restore(Snapshot(saved.state, arrays))
    envs.restore(saved)


def test_levels_that_wait_in_the_table_are_checked_and_unused_rows_are_not() -> None:
    envs = make("ledge", num_envs=2)
    never_reset = envs.snapshot()
    envs.reset(seed=0)
    saved = envs.snapshot()
    for snapshot, is_read in ((never_reset, True), (saved, False)):
        arrays = {key: array.copy() for key, array in snapshot.arrays.items()}
        arrays["table/records"]["start_y"][1] = 0.5
        changed = Snapshot(snapshot.state, arrays)
        if is_read:
            with pytest.raises(SnapshotError, match=r"'table/records'.*the start of row 1"):
                envs.restore(changed)
        else:
            envs.restore(changed)
    # Without a new task in the table, an env begins again with the level that it has: here none.
    arrays = {**never_reset.arrays, "batch/known": np.array([1, 0])}
    with pytest.raises(SnapshotError, match=r"'playing/records'.*height\[1\] is 0"):
        envs.restore(Snapshot(never_reset.state, arrays))


def test_with_a_curriculum_its_wrapper_saves() -> None:
    envs = make_vec("stepladder/Hockey-v0", 2, curriculum=Uniform([Task("a"), Task("b")]))
    envs.reset(seed=0)
    with pytest.raises(ConfigError, match="CurriculumVectorEnv"):
        envs.unwrapped.snapshot()
    envs.close()
