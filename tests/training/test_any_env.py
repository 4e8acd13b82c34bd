"""Any Gymnasium env is trained, evaluated and resumed by the same path as the built-in games."""

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

import stepladder
from cli.command_line import CommandLine
from stepladder import named
from stepladder.agents import DDDQNConfig, PPOConfig
from stepladder.cli import explain
from stepladder.curricula import AutoConfig, FrontierConfig
from stepladder.envs.ids import find_env, game_of, known_game, name_of
from stepladder.errors import ConfigError, RunError
from stepladder.games import Game, register_game
from stepladder.games.registry import GAMES
from stepladder.runs import RunReader
from stepladder.training import config, resume, train
from stepladder.training.config import EvaluationConfig, TrainingConfig
from training.own_env import TASKS, Corridor, Described, make_corridor

ROOT = Path(stepladder.__file__).parents[2]

SMALL: dict[str, Any] = {
    "num_envs": 2,
    "total_steps": 130,
    "epoch_steps": 64,
    "evaluation": EvaluationConfig(every_steps=None, num_games=2),
}
PPO = PPOConfig(hidden_sizes=(8,), rollout_steps=64, minibatch_size=32)


def groups_of(result: Any) -> list[str]:
    return [part["name"] for part in result.evaluation_results[-1]["total"]["parts"]]


# Training.


@pytest.mark.processes
@pytest.mark.timeout(110)
def test_a_class_is_trained_in_workers_with_tasks_and_a_curriculum(tmp_path: Path) -> None:
    result = train(
        env=Corridor, tasks=TASKS, curriculum=FrontierConfig(), agent=PPO, num_workers=1,
        run_folder=tmp_path / "run", **SMALL,
    )  # fmt: skip
    assert groups_of(result) == ["short", "long"]
    kept = result.run.config
    assert kept["env"] == "training.own_env:Corridor"
    assert (kept["num_workers"], kept["curriculum"]["type"]) == (1, "frontier")
    assert result.run.status == "finished"


def test_settings_for_any_env_are_used_where_none_are_named() -> None:
    result = train(env=make_corridor, env_kwargs={"length": 2}, agent="ppo", **SMALL)
    assert result.total_steps > 0
    with pytest.raises(RunError, match="Give run_folder"):
        _ = result.run
    with pytest.raises(ConfigError, match="agent must be one of dddqn, sac, ppo"):
        train(env=make_corridor, agent="pp")


def test_an_env_inside_a_function_is_resumed_when_it_is_given_again(tmp_path: Path) -> None:
    class Inner(Corridor):
        pass

    train(env=Inner, agent=PPO, run_folder=tmp_path / "run", **SMALL)
    result = train(env=Inner, resume=tmp_path / "run", total_steps=200)
    assert result.total_steps > 150
    assert resume(tmp_path / "run", total_steps=300).total_steps > 220
    with pytest.raises(ConfigError, match="num_envs cannot be given beside resume"):
        train(env=Inner, resume=tmp_path / "run", num_envs=3)


SCRIPT = """
import sys
import gymnasium as gym
from stepladder import Task, train
from stepladder.training.config import EvaluationConfig
from training.own_env import TASKS, Corridor

class Mine(Corridor):
    pass

class Timed(gym.Wrapper):
    pass

def give(env, task):
    env.get_wrapper_attr("set_task")(task)

if __name__ == "__main__":
    if sys.argv[1] == "begin":
        result = train(
            env=Mine, tasks=TASKS, agent="ppo", num_envs=2, num_workers=1, total_steps=100,
            epoch_steps=64, evaluation=EvaluationConfig(every_steps=None, num_games=2),
            run_folder="run", wrappers=[Timed], deliver=give, success_key="is_success",
            missing_success_is_failure=True,
        )
    else:
        result = train(env=Mine, resume="run", trust=True, total_steps=200)
    print(result.run.config["env"], result.total_steps)
"""


def script(folder: Path, *argv: str) -> str:
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")])
    done = subprocess.run(
        [sys.executable, "-W", "error", *argv],
        cwd=folder, env={**os.environ, "PYTHONPATH": path},
        capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    return done.stdout if done.returncode == 0 else done.stderr


@pytest.mark.processes
@pytest.mark.timeout(250)
def test_a_script_trains_its_own_class_and_resumes_in_another_process(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(SCRIPT)
    assert script(tmp_path, "mine.py", "begin").split()[0] == "mine:Mine"
    assert int(script(tmp_path, "mine.py", "resume").split()[1]) >= 200
    # A script can be imported from its folder, so the commands find the env, too.
    said = json.loads(script(tmp_path, "-m", "stepladder", "eval", "run", "--trust", "--json"))
    assert [part["name"] for part in said["total"]["parts"]] == ["short", "long"]
    config = RunReader(tmp_path / "run").config
    assert (config["wrappers"], config["deliver"]) == (["mine:Timed"], "mine:give")


def test_an_env_of_a_notebook_must_be_given_again(
    tmp_path: Path, command: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Inner(Corridor):
        pass

    train(env=Inner, agent=PPO, run_folder=tmp_path / "run", **SMALL)
    # As in another process.
    monkeypatch.setattr(named, "_given", {})
    said = command.fails("eval", tmp_path / "run", "--trust")
    assert "was defined in a notebook or a function, and cannot be found from here" in said
    assert "train(env=..., resume=run)" in said
    assert "eval and watch RUN --env-id" in said
    shown = command("eval", tmp_path / "run", "--env-id", "training.own_env:Corridor", "--json")
    assert json.loads(shown.out)["env"] == "Corridor"


# What an env says about itself.


def test_what_a_class_says_about_itself_is_used() -> None:
    agent = DDDQNConfig(
        hidden_sizes=(8,), batch_size=8, buffer_size=100, warmup_steps=16, mirror=True
    )
    result = train(env=Described, source={"num_tasks": 2}, agent=agent, **SMALL)
    assert groups_of(result) == ["exam"]
    described = TrainingConfig(env=Described, source={"num_tasks": 2})
    assert described.task_source().labels() == ["short"]
    with pytest.raises(ConfigError, match=r"agent\.mirror: .*Corridor has no symmetry"):
        TrainingConfig(env=Corridor, agent=agent)


def test_a_run_whose_module_knows_its_tasks_needs_trust_to_be_explained(
    tmp_path: Path, command: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(env=Described, agent=PPO, run_folder=tmp_path / "run", **SMALL)
    assert "length 2" in command("explain", tmp_path / "run").out
    for user in (config, explain):
        monkeypatch.setattr(user, "known_game", lambda name: None)
    said = command.fails("explain", tmp_path / "run")
    assert "'training.own_env:Described' has its own tasks" in said
    assert "add --trust" in said
    monkeypatch.undo()
    assert "length 2" in command("explain", tmp_path / "run", "--trust").out


def test_a_registered_env_has_an_id_of_its_own() -> None:
    @register_game("tests/Corridor-v0", Described.game)
    class Registered(Corridor):
        pass

    assert find_env("tests/Corridor-v0").entry_point is Registered
    assert game_of("tests/Corridor-v0") is Described.game
    assert isinstance(gym.make("tests/Corridor-v0").unwrapped, Registered)
    registered = TrainingConfig(env="tests/Corridor-v0")
    assert registered.task_source().num_tasks == len(TASKS)
    with pytest.raises(ConfigError, match="already have an entry 'stepladder/Hockey-v0'"):
        register_game("stepladder/Hockey-v0")(Corridor)


def test_the_game_of_an_env_is_found_by_name_spec_class_or_function() -> None:
    assert game_of("training.own_env:Described") is Described.game
    assert game_of(Described) is Described.game
    gym.register("tests/Described-v0", Described)
    assert game_of("tests/Described-v0") is game_of(gym.spec("tests/Described-v0"))
    assert known_game("tests/Described-v0") is Described.game
    assert type(game_of("CartPole-v1")) is type(game_of(make_corridor)) is Game
    assert game_of("stepladder.games:stepladder/Hockey-v0") is GAMES["stepladder/Hockey-v0"]


def test_a_config_imports_nothing_and_the_game_counts_once_it_is_there(tmp_path: Path) -> None:
    assert known_game("no_such_module:Env") is None
    unknown = TrainingConfig(env="no_such_module:Env", agent=DDDQNConfig(mirror=True))
    assert unknown.curriculum == AutoConfig()
    with pytest.raises(ConfigError, match="cannot be imported"):
        train(unknown)


def test_functions_without_a_name_of_their_own_are_told_apart() -> None:
    one, two = lambda: Corridor(2), lambda: Corridor(3)
    names = [name_of(one), name_of(two), name_of(one)]
    assert names[0] == names[2] != names[1]
    assert [find_env(name) for name in names] == [one, two, one]
    short = partial(Corridor, 2)
    assert find_env(name_of(short)) is short
    with pytest.raises(ConfigError, match="Give it again"):
        find_env("training.own_env:Corridor#77")
    with pytest.raises(ConfigError, match="env must be an env's id, or a class or function"):
        name_of(3)
