"""Envs that others have written, trained by the command alone, as a user of them would."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from cli.command_line import CommandLine, finished
from stepladder.runs import RunReader, trust

pytest.importorskip("torch")

pytestmark = [pytest.mark.processes, pytest.mark.timeout(110)]

SMALL = (
    *("--num-envs", "2", "--num-workers", "1", "--epoch-steps", "64"),
    *("--evaluation.num-games", "2", "--agent.hidden-sizes", "8"),
)
PPO = ("--agent.rollout-steps", "64", "--agent.minibatch-size", "32")

GRIDS = """
import gymnasium as gym
from minigrid.core.world_object import Lava
from minigrid.envs import EmptyEnv


class Room(EmptyEnv):
    def __init__(self, size=5, render_mode=None):
        super().__init__(size=size, max_steps=12, render_mode=render_mode)

    def _gen_grid(self, width, height):
        super()._gen_grid(width, height)
        if self.has_lava:
            self.put_obj(Lava(), 1, 2)


def give(env, task):
    env.unwrapped.has_lava = task.params["lava"]

"""

LAVA = """[
  {"name": "empty", "label": "empty", "params": {"lava": false}},
  {"name": "lava", "label": "lava", "params": {"lava": true}}
]"""

ROOMS = """
def make(num_agents=4):
    from mettagrid.builder.envs import make_navigation
    from mettagrid.envs.pettingzoo_env import MettaGridPettingZooEnv
    from mettagrid.simulator import Simulator

    config = make_navigation(num_agents=num_agents)
    config.game.max_steps = 11
    config.game.map_builder.width = config.game.map_builder.height = 7
    config.game.map_builder.seed = 5
    return MettaGridPettingZooEnv(Simulator(), config)
"""

RINK = """
import gymnasium as gym
from envs.original_hockey import BasicOpponent, HockeyEnv, Mode
from stepladder.envs import AgainstOpponent


def make():
    strong = lambda: BasicOpponent(weak=False)
    return AgainstOpponent(HockeyEnv(), {"weak": BasicOpponent, "strong": strong})


class Won(gym.Wrapper):
    def step(self, action):
        observation, reward, terminated, truncated, info = self.env.step(action)
        return observation, reward, terminated, truncated, {**info, "won": info["winner"] == 1}


def give(env, task):
    env.unwrapped.mode = Mode[task.params["mode"]]
    env.get_wrapper_attr("set_task")(task)
"""

GAMES = """
- {name: shoot, label: drill, params: {mode: TRAIN_SHOOTING, opponent: none}}
- {name: weak, label: game, params: {mode: NORMAL, opponent: weak}}
- {name: strong, label: game, params: {mode: NORMAL, opponent: strong}}
"""


@pytest.fixture(autouse=True)
def own_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the folder of a test, which commands import from, when it is over."""
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])


def result_of(command: CommandLine, *argv: Any) -> dict[str, Any]:
    code, out, err = command(*argv, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)


def groups_of(evaluation: dict[str, Any]) -> list[str]:
    return [part["name"] for part in evaluation["parts"]]


def test_minigrid_with_its_own_wrapper_tasks_that_a_function_delivers_and_success_by_return(
    command: CommandLine,
) -> None:
    pytest.importorskip("minigrid")
    Path("lava_grids.py").write_text(GRIDS)
    Path("grids.json").write_text(LAVA)
    told = result_of(
        command, "train", "--env", "lava_grids:Room", *SMALL, *PPO, "--total-steps", "128",
        "--wrappers", "minigrid.wrappers:ImgObsWrapper", "--return-threshold", "0.1",
        "--tasks", "grids.json", "--deliver", "lava_grids:give", "--curriculum", "staged",
        "--max-episode-steps", "9",
    )  # fmt: skip
    assert told["total_episodes"] >= 12
    total = told["evaluation_results"][-1]["total"]
    assert groups_of(total) == ["empty", "lava"]
    assert total["rate"] is not None
    assert "Stage 1 of 2: 'empty'" in command("explain", told["run"]).out
    shown = result_of(command, "eval", told["run"], "--trust", "--episodes", "3")
    assert (shown["total"]["num_games"], shown["total"]["mean_length"] <= 9.0) == (6, True)
    film = command("watch", told["run"], "--trust", "--out", "a.gif", "--max-steps", "3")
    assert film.out.startswith("a.gif: ")


def test_the_original_hockey_with_tasks_in_yaml(
    command: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("rink.py").write_text(RINK)
    Path("games.yaml").write_text(GAMES)
    told = result_of(
        command, "train", "--env", "rink:make", *SMALL, "--total-steps", "400",
        "--agent", "sac", "--agent.warmup-steps", "32", "--agent.batch-size", "16",
        "--tasks", "games.yaml", "--deliver", "rink:give", "--wrappers", "rink:Won",
        "--success-key", "won", "--curriculum", "staged", "--out", "hockey",
    )  # fmt: skip
    assert told["total_gradient_steps"] > 0
    assert groups_of(told["evaluation_results"][-1]["total"]) == ["drill", "game"]
    config = RunReader("hockey").config
    assert (config["deliver"], config["wrappers"]) == ("rink:give", ["rink:Won"])
    assert [task["name"] for task in config["tasks"]] == ["shoot", "weak", "strong"]
    # Nothing has to be said again; another process imports nothing of it unasked.
    monkeypatch.setattr(trust, "_made_here", {})
    said = command.fails("train", "--resume", "hockey", "--total-steps", "500")
    assert "names 'rink:make' and 'rink:give' and 'rink:Won': playing it would import" in said
    again = result_of(command, "train", "--resume", "hockey", "--trust", "--total-steps", "600")
    assert again["total_steps"] >= 600
    shown = result_of(command, "eval", "hockey", "--trust")
    assert groups_of(shown["total"]) == ["drill", "game"]


@pytest.mark.parametrize(
    ("env", "arguments", "num_agents"),
    [
        ("pettingzoo.classic.rps.rps:parallel_env", ("max_cycles=7",), 2),
        (
            "pettingzoo.butterfly.knights_archers_zombies.knights_archers_zombies:parallel_env",
            ("spawn_delay=2", "max_zombies=20", "max_cycles=30"),
            4,
        ),
    ],
    ids=["rps", "knights"],
)
def test_pettingzoo(
    command: CommandLine,
    monkeypatch: pytest.MonkeyPatch,
    env: str,
    arguments: tuple[str, ...],
    num_agents: int,
) -> None:
    pytest.importorskip("pettingzoo")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    flags = [word for argument in arguments for word in ("--env-kwargs", argument)]
    told = result_of(
        command, "train", "--env", env, *flags, *SMALL, *PPO, "--total-steps", "300",
        "--out", "run",
    )  # fmt: skip
    assert 300 <= told["total_steps"] < 300 + 2 * num_agents
    assert told["total_gradient_steps"] > 0
    assert told["evaluation_results"][-1]["total"]["num_games"] == 2
    again = result_of(command, "train", "--resume", "run", "--trust", "--total-steps", "700")
    assert again["total_episodes"] > told["total_episodes"]
    shown = result_of(command, "eval", "run", "--trust", "--episodes", "1")
    assert shown["total"]["num_games"] == 1


def test_mettagrid(tmp_path: Path) -> None:
    pytest.importorskip("mettagrid")
    (tmp_path / "rooms.py").write_text(ROOMS)
    # In a process of its own: it changes everybody's logging when it is imported.
    argv = ("train", "--env", "rooms:make", *SMALL, *PPO, "--total-steps", "128", "--json")
    code, out, err = finished(*argv, "--env-kwargs", "num_agents=3", cwd=tmp_path)
    assert (code, err) == (0, "")
    told = json.loads(out)
    # Eleven steps of three agents in each of two envs, twice.
    assert (told["total_episodes"], told["run"]) == (4, "runs/rooms-0")
    assert told["evaluation_results"][-1]["total"]["mean_length"] == 11.0
