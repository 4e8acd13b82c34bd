"""``stepladder watch``: any env, level or run, in a window or into a film."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import av
import numpy as np
import pygame
import pytest
from PIL import Image

from cli.command_line import CommandLine
from stepladder import Staged
from stepladder.cli import watch
from stepladder.curricula import StagedConfig
from stepladder.games.drawing.film import write_film
from stepladder.runs import Run
from stepladder.simulator import simulate
from stepladder.sync import LocalHost

MODULE = """
import gymnasium as gym
import numpy as np

from stepladder import Task


class Patch(gym.Env):
    '''A patch of colour that grows brighter; a task says how bright it starts.'''

    metadata = {"render_modes": ["rgb_array"], "render_fps": 20}
    observation_space = gym.spaces.Box(0.0, 255.0, (1,))
    action_space = gym.spaces.Discrete(3, start=5)
    played = []

    def __init__(self, length=4, render_mode=None, fails=False):
        self.render_mode, self.length, self.fails = render_mode, length, fails
        self.start = 10

    def set_task(self, task):
        self.start = task.params["start"]

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.light, self.left = self.start, self.length
        self.played.append((self.start, seed))
        return np.array([self.light], dtype=np.float32), {}

    def step(self, action):
        if self.fails:
            raise ValueError("the patch is torn")
        self.light, self.left = self.light + int(action), self.left - 1
        info = {"is_success": self.light > 30} if self.left == 0 else {}
        return np.array([self.light], dtype=np.float32), 1.0, self.left == 0, False, info

    def render(self):
        return np.full((16, 16, 3), self.light, dtype=np.uint8)


class Blind(gym.Env):
    observation_space = action_space = gym.spaces.Discrete(2)

    def __init__(self, render_mode=None):
        self.render_mode = None


def expert(env):
    return lambda observation: 7


def no_expert(env):
    return 7


def sleepy(env):
    return lambda observation: 1 / 0


def tasks():
    return [Task(f"{label} {start}", label, {"start": start}) for label, start in
            (("dark", 20), ("bright", 100))]


make_nothing = lambda render_mode: None
number = 7
gym.register("Patch-v0", entry_point=Patch)
"""


@pytest.fixture
def module(
    command: CommandLine, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[str]:
    """Write a module into the working directory; no other test has one of its name."""
    name = f"patches_{abs(hash(request.node.name))}"
    Path(f"{name}.py").write_text(MODULE)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield name
    sys.modules["gymnasium"].registry.pop("Patch-v0", None)


@pytest.fixture
def _screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")


def frames_of(path: str) -> list[Any]:
    """Return the pictures of a film, those of a GIF as often as they are shown in tenths."""
    if path.endswith(".mp4"):
        with av.open(path) as film:
            return [frame.to_ndarray(format="rgb24") for frame in film.decode(video=0)]
    frames = []
    with Image.open(path) as image:
        for number in range(image.n_frames):  # type: ignore[attr-defined]
            image.seek(number)
            frames.append(np.asarray(image.convert("RGB")))
    return frames


def lights(path: str) -> list[int]:
    """Return how bright the pictures of a film are."""
    return [int(frame[0, 0, 0]) for frame in frames_of(path)]


def patch_run(module: str, tasks: Any, *, with_envs: bool = False) -> None:
    """Make a run that has left its first stage and saved a checkpoint."""
    sys.path.insert(0, str(Path.cwd()))
    patches = __import__(module)
    settings = StagedConfig(stages=("dark", "bright"), threshold=0.5, min_episodes=1, mixing=None)
    curriculum = Staged(patches.tasks(), config=settings)
    for _ in range(60):
        curriculum.report(curriculum.draw_one(), 1.0)
    assert curriculum.current_stage == "bright"
    about = {"env": f"{module}:Patch", "curriculum": settings.to_json(), "tasks": tasks}
    with Run.create("run", kind="training", config=about) as run:
        saved = LocalHost(curriculum, 1) if with_envs else curriculum
        run.save_checkpoint("last", saved.snapshot(), 60)


def test_a_gif_of_a_foreign_env_shows_every_other_step(command: CommandLine) -> None:
    code, out, err = command("watch", "CartPole-v1", "--out", "pole.gif", "--episodes", 2)
    assert (code, err) == (0, "")
    assert out.startswith("pole.gif: ")
    assert out.endswith(" s, 2 episodes\n")
    frames = frames_of("pole.gif")
    assert frames[0].shape == (400, 600, 3)
    assert 10 < len(frames) < 200
    with Image.open("pole.gif") as image:
        assert image.info["duration"] == 40


def test_an_mp4_of_a_foreign_env_has_a_picture_per_step(command: CommandLine) -> None:
    flags = ("--out", "films/pole.mp4", "--max-steps", 6, "--scale", 0.5)
    code, out, err = command("watch", "CartPole-v1", *flags)
    # Reset and six steps, and the last picture for another half second.
    assert (code, out, err) == (0, "films/pole.mp4: 32 pictures, 0.6 s, 1 episode\n", "")
    assert [frame.shape for frame in frames_of("films/pole.mp4")] == [(200, 300, 3)] * 32


def test_the_same_seed_gives_the_same_film(command: CommandLine) -> None:
    for name, seed in (("one", 3), ("two", 3), ("three", 4)):
        command("watch", "CartPole-v1", "--out", f"{name}.gif", "--seed", seed, "--max-steps", 8)
    one, two, three = (Path(f"{name}.gif").read_bytes() for name in ("one", "two", "three"))
    assert one == two
    assert one != three


@pytest.mark.parametrize(
    ("policy", "wanted"),
    [
        ("idle", [10, 15, 20, 25, 30]),
        ("MODULE:expert", [10, 17, 24, 31, 38]),
    ],
)
def test_a_policy_plays(command: CommandLine, module: str, policy: str, wanted: list[int]) -> None:
    policy = policy.replace("MODULE", module)
    argv = ("watch", f"{module}:Patch", "--policy", policy, "--out", "patch.mp4")
    succeeded = "1 succeeded, 0 failed" if wanted[-1] > 30 else "0 succeeded, 1 failed"
    out = command(*argv).out
    # Half a second of the last picture, at 20 a second.
    assert out == f"patch.mp4: 15 pictures, 0.8 s, 1 episode: {succeeded}\n"
    seen = lights("patch.mp4")
    assert np.abs(np.subtract(seen, [*wanted, *wanted[-1:] * 10])).max() <= 4


def test_arguments_reach_the_env(command: CommandLine, module: str) -> None:
    argv = ("watch", f"{module}:Patch-v0", "--policy", "idle", "--out", "patch.mp4")
    assert "12 pictures" in command(*argv, "--env", "length=1").out
    assert "the patch is torn" in command.fails(*argv, "--env", "length=3", "--env", "fails=true")


def test_fewer_pictures_a_second_leave_steps_out(command: CommandLine, module: str) -> None:
    argv = ("watch", f"{module}:Patch", "--policy", "idle", "--env", "length=8", "--out", "a.mp4")
    out = command(*argv, "--fps", 10).out
    assert out.startswith("a.mp4: 10 pictures, 1.0 s, 1 episode")
    assert np.abs(np.subtract(lights("a.mp4")[:5], [10, 20, 30, 40, 50])).max() <= 4
    assert command(*argv, "--fps", 500).out.startswith("a.mp4: 19 pictures, 0.9 s")


@pytest.mark.slow
@pytest.mark.usefixtures("_screen")
def test_without_a_film_a_window_is_opened_and_closed(command: CommandLine, module: str) -> None:
    assert "window: 15 pictures" in command("watch", f"{module}:Patch").out
    assert not pygame.display.get_init()
    code, out, err = command("watch", "CartPole-v1", "--max-steps", 3)
    assert (code, out, err) == (0, "window: 29 pictures, 0.6 s, 1 episode\n", "")


@pytest.mark.usefixtures("_screen")
def test_closing_the_window_ends_it(
    command: CommandLine, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Impatient(watch.Window):
        def show(self, picture: Any) -> None:
            super().show(picture)
            self.close()

    monkeypatch.setattr(watch, "Window", Impatient)
    code, out, err = command("watch", f"{module}:Patch", "--episodes", 100)
    assert (code, out, err) == (0, "window: 1 picture, 0.1 s, 0 episodes\n", "")


def test_without_a_screen_a_film_is_suggested(
    command: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SDL_VIDEODRIVER", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    assert "Write a film instead (--out film.mp4)" in command.fails("watch", "CartPole-v1")


@pytest.mark.parametrize(("tasks", "with_envs"), [("listed", False), ("MODULE:tasks", True)])
def test_a_run_is_played_with_the_tasks_of_its_curriculum(
    command: CommandLine, module: str, tasks: str, with_envs: bool
) -> None:
    listed = [
        {"name": f"{label} {start}", "label": label, "params": {"start": start}}
        for label, start in (("dark", 20), ("bright", 100))
    ]
    tasks = tasks.replace("MODULE", module)
    patch_run(module, listed if tasks == "listed" else tasks, with_envs=with_envs)
    flags = ("--out", "run.mp4", "--episodes", 6, "--policy", "idle", "--seed", 5)
    out = command("watch", "run", *flags).out
    assert "6 episodes: 6 succeeded, 0 failed" in out
    played = sys.modules[module].Patch.played
    assert [seed for _, seed in played] == [5, 6, 7, 8, 9, 10]
    # The second stage is the current one; now and then the first is mixed in.
    assert [start for start, _ in played].count(100) >= 4


def test_a_run_without_a_curriculum_has_its_own_arguments_and_those_given(
    command: CommandLine, module: str
) -> None:
    with Run.create(
        "plain", kind="training", config={"env": f"{module}:Patch", "env_kwargs": {"length": 2}}
    ):
        pass
    argv = ("watch", "plain", "--policy", "idle", "--out", "plain.mp4")
    assert command(*argv).out.startswith("plain.mp4: 13 pictures")
    assert command(*argv, "--env", "length=5").out.startswith("plain.mp4: 16 pictures")


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({}, "does not say which env it plays: its config must have 'env'"),
        ({"env": 3}, "got 3 and {}"),
        ({"env": "Patch", "curriculum": {}}, "has no checkpoint yet, so there is no curriculum"),
    ],
)
def test_a_run_that_cannot_be_watched_says_why(
    command: CommandLine, config: dict[str, Any], said: str
) -> None:
    with Run.create("bare", kind="training", config=config):
        pass
    assert said in command.fails("watch", "bare", "--out", "a.gif")


def test_a_run_that_does_not_name_its_tasks_or_names_other_ones_says_so(
    command: CommandLine, module: str
) -> None:
    patch_run(module, None)
    said = command.fails("watch", "run", "--out", "a.gif")
    assert "does not say what its tasks are: its config must have 'tasks'" in said
    config = Path("run/config.json")
    Path("levels/dark").mkdir(parents=True)
    Path("levels/dark/one.txt").write_text("#")
    config.write_text(config.read_text().replace('"tasks": null', '"tasks": "levels"'))
    # A folder is read as one; it holds other tasks than the checkpoint knows.
    assert "no active task has label 'bright'" in command.fails("watch", "run", "--out", "a.gif")


def test_a_simulated_run_has_no_env_to_watch(command: CommandLine) -> None:
    simulate(engine="direct", num_epochs=1, run_folder="simulated")
    said = command.fails("watch", "simulated", "--out", "a.gif")
    assert "is a run of the simulator, which has no env to watch" in said
    assert said.endswith("simulated")
    assert "stepladder report" in said


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ([], "there is nothing to watch. Name an env, a level or a run"),
        (["Nope-v1"], "'Nope-v1' is neither the folder of a run nor the file of a level; the env"),
        (["."], "has no run: it has no config.json"),
        (["nomodule:make"], "the module 'nomodule' cannot be imported"),
        (["MODULE:nothing"], "MODULE has no function 'nothing', nor does it register an env of"),
        (["MODULE:number"], "MODULE has no function 'number'"),
        (["MODULE:make_nothing"], "must make a gymnasium.Env; it made something of type NoneType"),
        (["MODULE:Blind"], "cannot draw itself: it has no render_mode 'rgb_array'"),
        (["MODULE:Patch", "--env", "x=1"], "cannot be made: TypeError"),
        (["MODULE:Patch", "--env", "x"], "--env must be KEY=VALUE; got 'x'"),
        (["MODULE:Patch", "--policy", "clever"], "there is no policy 'clever'; there are random"),
        (["MODULE:Patch", "--policy", "scripted"], "has no expert of its own"),
        (["MODULE:Patch", "--policy", "MODULE:no_expert"], "must return a function from observa"),
        (["MODULE:Patch", "--policy", "MODULE:nope"], "that takes an env and returns a policy"),
        (["MODULE:Patch", "--policy", "MODULE:sleepy"], "the policy raised ZeroDivisionError"),
        (["MODULE:Patch", "--policy", "a/b:c"], "'a/b' is not the name of a module"),
        (["MODULE:Patch", "--env", "fails=true"], "raised ValueError: the patch is torn"),
        (["MODULE:Patch", "--episodes", "0"], "--episodes must be an integer of at least 1"),
        (["MODULE:Patch", "--scale", "0"], "--scale must be finite and above 0; got 0.0"),
        (["MODULE:Patch", "--fps", "-1"], "--fps must be finite and above 0; got -1.0"),
        (["MODULE:Patch", "--fps", "0.01"], "a .gif can show 0.1 to 50 pictures a second"),
        (["MODULE:Patch", "--max-steps", "0"], "--max-steps must be an integer of at least 1"),
        (["MODULE:Patch", "--seed", "-1"], "--seed must be an integer of at least 0"),
        (["MODULE.py"], "Level 'MODULE'"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_no_file(
    command: CommandLine, module: str, argv: list[str], said: str
) -> None:
    argv_here = [word.replace("MODULE", module) for word in argv]
    assert said.replace("MODULE", module) in command.fails("watch", *argv_here, "--out", "a.gif")
    assert not list(Path().glob("*.gif*"))
    assert not list(Path().glob(".*"))


@pytest.mark.parametrize("name", ["film.avi", "film", "film.png"])
def test_a_film_of_another_kind_is_refused(command: CommandLine, name: str) -> None:
    said = command.fails("watch", "CartPole-v1", "--out", name)
    assert said == f"a film must be called .gif or .mp4; got {name!r}. Change its suffix."


def test_a_film_of_ours_is_replaced_and_any_other_file_is_left_alone(
    command: CommandLine, module: str
) -> None:
    for suffix in (".gif", ".mp4"):
        name = f"film{suffix}"
        write_film(name, [np.zeros((4, 4, 3), dtype=np.uint8)], fps=10)
        before = Path(name).read_bytes()
        assert command("watch", f"{module}:Patch", "--out", name).code == 0
        assert Path(name).read_bytes() != before
    Path("holiday.mp4").write_bytes(b"the sea")
    said = command.fails("watch", f"{module}:Patch", "--out", "holiday.mp4")
    assert "was not written by this command and is not replaced" in said
    assert Path("holiday.mp4").read_bytes() == b"the sea"


@pytest.mark.slow
def test_a_level_file_is_solved_by_the_planner(command: CommandLine) -> None:
    Path("steps.txt").write_text("########\n#......#\n#@.S.#D#\n########\n")
    code, out, err = command("watch", "steps.txt", "--out", "steps.gif", "--policy", "planner")
    assert (code, err) == (0, "")
    assert out.startswith("steps.gif: ")
    assert out.endswith(" s, 1 episode: 1 succeeded, 0 failed\n")
    assert frames_of("steps.gif")[0].shape == (400, 640, 3)


def test_hockey_is_played_with_its_arguments(command: CommandLine) -> None:
    flags = ("--env", "mode=TRAIN_SHOOTING", "--max-steps", 4, "--fps", 50, "--out", "game.gif")
    assert command("watch", "stepladder/Hockey-v0", *flags).code == 0
    # The caption names the mode, and things move.
    frames = frames_of("game.gif")
    assert frames[0].shape == (480, 600, 3)
    assert not np.array_equal(frames[0], frames[-1])
