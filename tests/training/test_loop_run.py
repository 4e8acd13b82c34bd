"""The run of a loop of one's own: all is logged and saved, and a resumed one goes on exactly."""

import json
import signal
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import stepladder
from stepladder import Frontier, Task, make_vec, run
from stepladder.errors import ChannelError, ConfigError, RunError, SnapshotError
from stepladder.runs import Run, RunReader
from stepladder.runs.checkpoint_folders import find
from stepladder.training.config import CheckpointConfig
from stepladder.training.loop_run import LoopRun
from testing_env import PracticeEnv
from training.loop_results import left_behind
from training.loop_scenes import (
    CHUNK,
    LENGTH,
    NUM_ENVS,
    RARELY,
    Counter,
    play,
    staged,
    tasks,
    vec,
)

STILL = np.zeros(NUM_ENVS, dtype=np.int64)


def stop(loop: LoopRun) -> None:
    """End a loop as a mistake in it would."""
    raise ZeroDivisionError("by mistake")


# What is kept.


def test_everything_is_in_the_run_when_the_loop_is_over(tmp_path: Path) -> None:
    agent = play(tmp_path, 10 * CHUNK, config={"lr": 0.1})
    reader = RunReader(tmp_path)
    assert (reader.kind, reader.status, reader.seed) == ("loop", "finished", 2)
    assert reader.config["lr"] == 0.1
    assert reader.config["curriculum"]["type"] == "staged"
    assert reader.config["num_envs"] == NUM_ENVS
    assert [Task.from_json(one) for one in reader.config["tasks"]] == tasks()
    steps, returns = reader.metric("overview/reward")
    # A checkpoint ends an epoch, too.
    assert steps.tolist() == [CHUNK * number for number in range(1, 11)]
    assert returns.tolist() == [float(LENGTH)] * 10
    assert reader.metric("losses/policy")[1].tolist() == list(range(1, 11))
    assert reader.metric("mine/value")[1].tolist() == list(range(1, 11))
    (advanced,) = reader.events("stage_advanced")
    assert advanced.text.startswith("a -> b")
    assert reader.task_steps()[-1] == 10 * CHUNK
    assert sum(reader.tasks()["samples"]) == 10 * NUM_ENVS
    assert reader.events("explanation")[-1].text.startswith("Staged: 6 tasks, 30 episodes observed")
    assert [folder.name for folder in find(tmp_path)] == reader.checkpoints()[::-1]
    assert len(find(tmp_path)) == 2
    assert (find(tmp_path)[0] / "value.txt").read_text() == str(agent.value) == "10"


def test_epochs_have_at_least_so_many_steps_and_losses_are_means(tmp_path: Path) -> None:
    play(tmp_path, 7 * CHUNK, checkpoints=RARELY, epoch_steps=2 * CHUNK)
    reader = RunReader(tmp_path)
    # The first report is saved at once, and the end.
    steps, losses = reader.metric("losses/policy")
    assert (steps / CHUNK).tolist() == [1, 3, 5, 7]
    assert losses.tolist() == [1.0, 2.5, 4.5, 6.5]
    assert reader.metric("mine/value")[1].tolist() == [1.0, 3.0, 5.0, 7.0]
    assert [reader.checkpoint_step(name) for name in reader.checkpoints()] == [CHUNK, 7 * CHUNK]


def test_an_update_after_the_last_step_belongs_to_the_epoch_there(tmp_path: Path) -> None:
    envs = vec(staged())
    with run(tmp_path, envs) as loop:
        loop.reset(seed=0)
        for _ in range(LENGTH):
            loop.step(STILL)
        loop.report({"policy": 1.0})
        loop.report({"policy": 3.0}, {"mine/value": 5.0})
    reader = RunReader(tmp_path)
    assert [reader.metric(name)[1].tolist() for name in ("losses/policy", "mine/value")] == [
        [3.0], [5.0],
    ]  # fmt: skip
    assert reader.metric("overview/steps_per_second")[1].tolist()[0] > 0.0
    assert reader.metric("env_curriculum_stats/per_label_samples/a")[1].tolist() == [NUM_ENVS]
    envs.close()


def test_the_step_that_only_resets_is_not_counted(tmp_path: Path) -> None:
    envs = make_vec(PracticeEnv, NUM_ENVS, curriculum=staged(), num_workers=0)
    with run(tmp_path, envs) as loop:
        loop.reset(seed=0)
        for _ in range(12):
            loop.step(STILL)
        # Four steps, one that only resets, four steps, one that only resets, two steps.
        assert loop.num_steps == 10 * NUM_ENVS
        loop.reset(options={"reset_mask": np.array([True, False, False])})
        for _ in range(3):
            loop.step(STILL)
        # The first env plays its fourth step next; the others have ended after two.
        assert loop.num_steps == 10 * NUM_ENVS + 3 * NUM_ENVS - 2
    assert RunReader(tmp_path).metric("metric/agent_step")[0].tolist() == [37]
    assert envs.curriculum.num_steps == 8 * NUM_ENVS + 2 * LENGTH
    envs.close()


class Telling(PracticeEnv):
    """An env that measures something."""

    def step(self, action: Any) -> Any:
        *rest, info = super().step(action)
        return (*rest, {**info, "coins": float(self.steps)})


def test_what_envs_measure_is_logged_through_wrappers_too(tmp_path: Path) -> None:
    inner = make_vec(Telling, NUM_ENVS, curriculum=staged(), num_workers=0)
    envs = gym.wrappers.vector.RecordEpisodeStatistics(inner)
    with run(tmp_path, envs) as loop:
        loop.reset(seed=0)
        for _ in range(4):
            loop.step(STILL)
        loop.event("note", "half way")
    reader = RunReader(tmp_path)
    assert reader.metric("env_info/coins")[1].tolist() == [2.5]
    assert reader.metric("overview/reward")[1].tolist() == [4.0]
    assert reader.events("note")[0].step == 4 * NUM_ENVS
    envs.close()


def test_a_registered_env_is_named_so_that_it_can_be_watched(tmp_path: Path) -> None:
    curriculum = Frontier(stepladder.ListSource([Task("a", params={"stage": "simplest"}, seed=1)]))
    envs = make_vec(
        "stepladder/Ledge-v0", 2, curriculum=curriculum, env_kwargs={"shaping": True, "gamma": 0.9}
    )
    with run(tmp_path, envs) as loop:
        loop.reset(seed=0)
        for _ in range(3):
            loop.step(np.zeros(2, dtype=np.int64))
        loop.report()
    reader = RunReader(tmp_path)
    assert reader.config["env"] == "stepladder/Ledge-v0"
    assert reader.config["env_kwargs"]["gamma"] == 0.9
    assert reader.metric("metric/agent_step")[0].tolist() == [6]
    envs.close()


def test_a_loop_without_envs_counts_its_steps_itself(tmp_path: Path) -> None:
    for steps in (8, 16):
        curriculum = staged()
        with run(tmp_path, curriculum, resume=True) as loop:
            while loop.num_steps < steps:
                curriculum.report(curriculum.draw_one(), success=True)
                loop.note({"loss": 1.0}, 1)
                loop.report()
        assert curriculum.num_observed == loop.num_episodes == steps
    assert RunReader(tmp_path).metric("metric/agent_step")[0].tolist()[-1] == 16
    said = r"no vector env to step\. Count steps with note"
    with run(tmp_path, staged(), overwrite=True) as loop, pytest.raises(ConfigError, match=said):
        loop.step(STILL)


# Going on.


def test_a_resumed_loop_goes_on_as_if_it_had_never_stopped(tmp_path: Path) -> None:
    play(tmp_path / "whole", 9 * CHUNK)
    play(tmp_path / "parts", 4 * CHUNK)
    assert RunReader(tmp_path / "parts").status == "finished"
    with pytest.raises(ZeroDivisionError):
        play(tmp_path / "parts", 9 * CHUNK, on_report=stop)
    agent = play(tmp_path / "parts", 9 * CHUNK)
    assert agent.value == 9
    assert left_behind(tmp_path / "parts") == left_behind(tmp_path / "whole")


def test_what_came_after_the_last_checkpoint_is_played_again(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        play(
            tmp_path,
            9 * CHUNK,
            checkpoints=CheckpointConfig(every_steps=3 * CHUNK),
            on_report=lambda loop: loop.num_steps == 6 * CHUNK and stop(loop),
        )
    reader = RunReader(tmp_path)
    assert reader.status == "failed: ZeroDivisionError: by mistake"
    # Everything that was counted is there to look at, with what the curriculum had come to.
    assert reader.metric("metric/agent_step")[0].tolist()[-1] == 6 * CHUNK
    assert reader.events("explanation")[-1].step == reader.task_steps()[-1] == 6 * CHUNK
    assert reader.checkpoint_step() == 4 * CHUNK
    reached: list[tuple[int, int]] = []
    agent = play(
        tmp_path,
        5 * CHUNK,
        on_report=lambda loop: reached.append((loop.num_steps, loop.num_episodes)),
    )
    assert reached == [(5 * CHUNK, 5 * NUM_ENVS)]
    assert agent.value == 5
    steps = RunReader(tmp_path).metric("metric/agent_step")[0]
    assert (steps / CHUNK).tolist() == [1, 3, 4, 5]


def test_ctrl_c_waits_for_the_next_report_which_saves(tmp_path: Path) -> None:
    def press(loop: LoopRun) -> None:
        if loop.num_steps == 3 * CHUNK:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        play(tmp_path, 9 * CHUNK, checkpoints=RARELY, on_report=press)
    reader = RunReader(tmp_path)
    assert (reader.status, reader.checkpoint_step()) == ("interrupted", 4 * CHUNK)
    assert play(tmp_path, 5 * CHUNK).value == 5
    # In the last stretch, whatever follows the loop is not wanted.
    with pytest.raises(KeyboardInterrupt):
        play(
            tmp_path,
            6 * CHUNK,
            on_report=lambda loop: signal.raise_signal(signal.SIGTERM),
        )
    assert RunReader(tmp_path).status == "finished"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_damaged_checkpoint_is_refused_and_the_one_before_is_used(tmp_path: Path) -> None:
    play(tmp_path, 5 * CHUNK)
    newest = find(tmp_path)[0]
    next(tmp_path.glob(f"checkpoints/{newest.name}.*.npz")).write_bytes(b"")
    assert play(tmp_path, 6 * CHUNK).value == 6
    (event,) = RunReader(tmp_path).events("checkpoint_refused")
    assert event.step == 4 * CHUNK
    assert event.text.startswith(f"{newest.name} was refused: ")
    for path in tmp_path.glob("checkpoints/*.npz"):
        path.write_bytes(b"")
    with pytest.raises(SnapshotError, match="has no checkpoint that can be used; step-0000"):
        play(tmp_path, 7 * CHUNK)
    # Without a checkpoint, nothing can be lost by beginning anew.
    for folder in find(tmp_path):
        (folder / "value.txt").unlink()
        folder.rmdir()
    assert play(tmp_path, CHUNK).value == 1


def test_a_save_that_fails_leaves_the_checkpoint_before(tmp_path: Path) -> None:
    envs, agent = vec(staged()), Counter()

    def save(folder: Path) -> None:
        agent.save(folder)
        if agent.value:
            raise OSError(28, "No space left on device")

    def full_disk() -> None:
        with run(tmp_path, envs, save=save) as loop:
            loop.reset(seed=0)
            for agent.value in range(2):
                loop.step(STILL)
                loop.save()

    with pytest.raises(RunError, match="No space left on device"):
        full_disk()
    (folder,) = find(tmp_path)
    assert (folder / "value.txt").read_text() == "0"
    assert RunReader(tmp_path).status.startswith("failed: RunError")
    envs.close()


def test_envs_that_were_closed_before_their_run_are_named(tmp_path: Path) -> None:
    envs = vec(staged())

    def closed_too_soon() -> None:
        with run(tmp_path, envs) as loop:
            loop.reset(seed=0)
            loop.step(STILL)
            envs.close()

    with pytest.raises(ChannelError, match="Close them after the run: behind its with statement"):
        closed_too_soon()
    # All that was counted is there.
    assert RunReader(tmp_path).metric("metric/agent_step")[0].tolist() == [NUM_ENVS]


def test_a_damaged_account_is_refused(tmp_path: Path) -> None:
    play(tmp_path, CHUNK)
    (path,) = tmp_path.glob("checkpoints/*.npz")
    snapshot = stepladder.Snapshot.load(path)
    for change, said in (
        ({"num_steps": -1}, "num_steps of part 'loop'"),
        ({"elapsed_s": ["soon"]}, "elapsed_s of part 'loop'"),
        ({"reporter": 3}, "has no part 'reporter'"),
        ({"episodes": {}}, "num_ended of part 'episodes'"),
    ):
        own = {**snapshot.state["loop"], **change}
        stepladder.Snapshot({**snapshot.state, "loop": own}, snapshot.arrays).save(path)
        with pytest.raises(SnapshotError, match=said):
            play(tmp_path, 2 * CHUNK)
    stepladder.Snapshot(snapshot.state, snapshot.arrays).save(path)
    assert play(tmp_path, 2 * CHUNK).value == 2


# What is refused.


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"resume": True, "overwrite": True}, "resume and overwrite contradict each other"),
        ({"epoch_steps": 0}, "epoch_steps must be an integer of at least 1; got 0"),
        ({"checkpoints": 3}, "checkpoints must be a CheckpointConfig; got 3"),
        ({"save": 3}, "save must be a function that takes a folder; got 3"),
        ({"config": {"a": object()}}, "config.a"),
    ],
)
def test_a_wrong_argument_leaves_no_folder(
    tmp_path: Path, settings: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        run(tmp_path / "run", staged(), **settings)
    assert not (tmp_path / "run").exists()


def test_envs_without_a_curriculum_are_refused(tmp_path: Path) -> None:
    envs = make_vec("CartPole-v1", 2, num_workers=0)
    with pytest.raises(ConfigError, match="a run needs a curriculum or a vector env with a curric"):
        run(tmp_path / "run", envs)
    envs.close()


def test_a_run_is_replaced_only_if_that_is_asked_for(tmp_path: Path) -> None:
    play(tmp_path / "run", CHUNK)
    with pytest.raises(RunError, match="holds a run already"):
        play(tmp_path / "run", CHUNK, resume=False)
    assert play(tmp_path / "run", CHUNK, resume=False, overwrite=True).value == 1
    Run.create(tmp_path / "other", kind="training", config={}, seed=0).close()
    with pytest.raises(RunError, match="holds a training, not the run of a loop"):
        play(tmp_path / "other", CHUNK)


@pytest.mark.parametrize(
    ("envs", "said"),
    [
        (lambda: vec(staged(), 4), "was made with 3 envs and this channel has 4"),
        (lambda: vec(staged(window_episodes=7)), "config.window_episodes was 50 and is now 7"),
        (
            lambda: vec(stepladder.Staged(tasks(5), stages=("a", "b"), threshold=0.9,
                                          min_episodes=6, seed=2)),
            "another task set .number of tasks: 6 in the snapshot, 5 here",
        ),
    ],
)  # fmt: skip
def test_other_envs_are_refused_and_the_run_stays_as_it_is(
    tmp_path: Path, envs: Any, said: str
) -> None:
    play(tmp_path, CHUNK)
    before = left_behind(tmp_path)
    others = envs()
    with pytest.raises(SnapshotError, match=said):
        run(tmp_path, others, resume=True)
    assert left_behind(tmp_path) == before
    assert RunReader(tmp_path).status == "finished"
    others.close()


def test_the_settings_of_a_run_are_plain_json(tmp_path: Path) -> None:
    play(tmp_path, CHUNK)
    assert json.loads((tmp_path / "config.json").read_text())["config"]["num_envs"] == NUM_ENVS
