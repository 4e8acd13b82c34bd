"""``stepladder train``: as a user trains, stops, goes on and looks at what came of it."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from cli.command_line import CommandLine, running, wait_until
from stepladder.cli.inputs import finding
from stepladder.errors import RunError
from stepladder.runs import RunReader
from stepladder.training.presets import PRESETS

pytest.importorskip("torch")

SMALL = (
    *("--num-envs", "2", "--epoch-steps", "64", "--evaluation.num-games", "2"),
    *("--agent.rollout-steps", "64", "--agent.minibatch-size", "32", "--agent.hidden-sizes", "8"),
)
SHORT = ("cartpole", *SMALL, "--total-steps", "200")
ENDLESS = ("cartpole", *SMALL, "--total-steps", "100000000", "--out", "run")
LEDGE = (*SMALL, "--source", "stages=simplest,simpler", "--evaluation.labels", "simplest")

processes = [pytest.mark.processes, pytest.mark.timeout(60)]


def config_of(folder: str) -> dict[str, Any]:
    return dict(RunReader(folder).config)


def test_a_training_tells_what_it_does_and_what_can_be_done_with_it(command: CommandLine) -> None:
    code, out, err = command("train", *SHORT)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "PPO on CartPole-v1, 2 envs, seed 0, cpu"
    assert lines[1].startswith(" 65 steps (32%)  return ")
    assert " steps/s (env " in lines[1]
    assert lines[1].endswith(" left")
    assert "\nfinished after 200 steps (" in out
    table = out[out.index("\nheld out, at 200 steps (drawn actions):\n") :].splitlines()
    assert " ".join(table[2].split()) == "return games random drawn (own way) best"
    assert table[3].startswith("all         2 ")
    assert lines[-5:] == [
        "kept in runs/cartpole-0:",
        "  stepladder watch runs/cartpole-0    # watch it",
        "  stepladder eval runs/cartpole-0     # test it",
        "  stepladder explain runs/cartpole-0  # ask it why",
        "  stepladder report runs/cartpole-0   # plots",
    ]
    reader = RunReader("runs/cartpole-0")
    assert (reader.kind, reader.status) == ("training", "finished")


def test_a_run_on_ledge_can_be_explained_reported_and_watched(command: CommandLine) -> None:
    told = json.loads(command("train", *LEDGE, "--total-steps", 150, "--json").out)
    assert told["run"] == "runs/ledge-0"
    assert told["evaluation_results"][-1]["total"]["parts"][0]["name"] == "simplest"
    code, out, _ = command("explain", told["run"], "--top", 2)
    assert code == 0
    assert "Stage 1 of 2: 'simplest'." in out
    assert "its stage 'simplest' is the current one" in out
    assert "evaluation: 16 games, drawn actions: simplest solved" in out
    # The run's own last evaluation comes out again.
    again = json.loads(command("eval", told["run"], "--json").out)
    assert again["total"] == told["evaluation_results"][-1]["total"]
    shown = json.loads(command("explain", told["run"], "--task", "simpler/steps/0", "--json").out)
    assert (shown["step"], shown["as_of"], shown["num_tasks"]) == (150, 150, 400)
    assert "locked until 'simplest' is passed" in shown["tasks"][0]["reason"]
    assert command("report", told["run"]).code == 0
    page = Path("report.html").read_text()
    for text in ("evaluation/success", "env_seconds", "drawn actions: simplest solved"):
        assert text in page
    code, out, _ = command("watch", told["run"], "--out", "film.gif", "--max-steps", 4)
    assert (code, out.split(":")[0]) == (0, "film.gif")


def test_flags_change_single_settings_of_what_was_named(command: CommandLine) -> None:
    more = ("--agent.gamma", 0.9, "--seed", 3, "--evaluation.every-steps", "None", "--no-keep")
    code, out, err = command("train", *SHORT, *more)
    assert (code, err) == (0, "")
    assert "seed 3" in out
    assert out.endswith("nothing was kept\n")
    assert not Path("runs").exists()
    assert command("train", *SHORT, *more[:-1], "--out", "kept").code == 0
    config = config_of("kept")
    assert (config["agent"]["gamma"], config["evaluation"]["every_steps"]) == (0.9, None)
    assert config["agent"]["learning_rate"] == PRESETS["cartpole"].agent.learning_rate


def test_another_agent_and_curriculum_bring_their_own_flags(command: CommandLine) -> None:
    code, out, err = command(
        *("train", "--env", "CartPole-v1", "--agent", "dddqn", "--agent.epsilon-steps", 50),
        *("--agent.batch-size", 8, "--agent.warmup-steps", 16, "--agent.hidden-sizes", 8),
        *("--curriculum", "uniform", "--curriculum.exploration", 0.5, "--num-envs", 2),
        *("--total-steps", 60, "--epoch-steps", 50, "--evaluation.num-games", 1, "--json"),
    )
    assert (code, err) == (0, "")
    told = json.loads(out)
    assert told["run"] == "runs/cartpole-0"
    config = config_of(told["run"])
    assert config["agent"]["type"] == "DDDQN"
    assert config["agent"]["epsilon_steps"] == 50
    assert config["curriculum"]["type"] == "uniform"
    assert config["curriculum"]["exploration"] == 0.5


def test_a_config_in_a_file_gives_the_run_its_name(command: CommandLine) -> None:
    settings = {**PRESETS["cartpole"].to_json(), "total_steps": 70, "num_envs": 3}
    Path("mine.json").write_text(json.dumps(settings))
    # It may stand behind flags too.
    told = json.loads(
        command("train", "--seed", 7, "mine.json", "--evaluation.num-games", 1, "--json").out
    )
    assert told["run"] == "runs/mine-7"
    assert config_of("runs/mine-7")["num_envs"] == 3


def test_an_interrupted_or_finished_run_goes_on(command: CommandLine) -> None:
    assert command("train", *SHORT, "--out", "run").code == 0
    code, out, err = command("train", "--resume", "run")
    assert (code, err) == (0, "")
    assert "\nnothing is left to do: run has finished after 200 steps (" in out
    later = "stepladder train --resume run --total-steps 400"
    assert out.endswith(f"\ncontinue it with a later end, such as:\n  {later}\n")
    code, out, err = command("train", "--resume", "run", "--total-steps", 900)
    assert (code, err) == (0, "")
    assert out.startswith("run is resumed\n")
    steps = RunReader("run").metric("metric/agent_step")[0]
    assert steps[-1] > 300


def test_presets_are_listed(command: CommandLine) -> None:
    out = command("train", "--list-presets").out
    assert [line.split()[0] for line in out.splitlines()[1:]] == list(PRESETS)


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_has_help_with_its_own_numbers(command: CommandLine, name: str) -> None:
    code, out, err = command("train", name, "--help")
    assert (code, err) == (0, "")
    preset = PRESETS[name]
    assert f"(default: {preset.total_steps})" in " ".join(out.replace("│", " ").split())
    assert ("--agent.tau" in out) == (preset.agent.kind == "SAC")


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["cartpol"], "'cartpol' is neither a preset nor a file; the presets are ledge,"),
        (["none.json"], "'none.json' is neither a preset nor a file"),
        (["--bogus", "3"], "--bogus: unknown flag."),
        (["--num-envs", "0"], "--num-envs must be an integer of at least 1; got 0"),
        (["--agent", "ddpg"], "--agent must be one of dddqn, sac, ppo; got 'ddpg'"),
        (["--agent", "sac"], "agent: SAC needs continuous actions and stepladder/Ledge-v0 has"),
        (["--agent.tau", "0.1"], "--agent.tau"),
        (["--agent.gamma", "2"], "gamma must lie in [0, 1]; got 2.0"),
        (["--curriculum", "best"], "--curriculum must be one of uniform, frontier,"),
        (["--curriculum", "bad.json"], "bad.json is not JSON"),
        (["--device", "tpu"], "device must be cpu, cuda, cuda: with a number, or auto"),
        (["--env-kwargs", "speed"], "--env-kwargs must be KEY=VALUE; got 'speed'"),
        (["--env", "Nope-v3", "--num-envs", "1"], "Nope"),
        (["--no-keep", "--tensorboard"], "--tensorboard needs a run; leave out --no-keep."),
        (["--no-keep", "--out", "x"], "--out needs a run; leave out --no-keep."),
        (["--resume", "nowhere"], "nowhere"),
        (["--resume", "x", "--seed", "3"], "--seed cannot be given beside --resume"),
        (["ledge", "--resume", "x"], "ledge cannot be given beside --resume"),
        (["bad.json"], "bad.json is not JSON"),
        (["one.json"], "1 problem in one.json; nothing was started: num_env: unknown key."),
        (["cartpole", "--initial-weights", "gone"], "gone"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_nothing_behind(
    command: CommandLine, argv: list[str], said: str
) -> None:
    Path("bad.json").write_text("{")
    Path("one.json").write_text('{"num_env": 3}')
    assert said in command.fails("train", *argv)
    assert sorted(str(path) for path in Path().rglob("*")) == ["bad.json", "one.json"]


def test_many_mistakes_are_a_list_with_a_line_for_each(command: CommandLine) -> None:
    Path("many.json").write_text('{"num_env": 3, "seed": -1, "agent": {"type": "PPO", "clip": 0}}')
    code, out, err = command("train", "many.json")
    assert (code, out) == (2, "")
    first, *rest = err.splitlines()
    assert first == "stepladder: 3 problems in many.json; nothing was started:"
    assert [line.split(":")[0] for line in rest] == ["  seed", "  agent.clip", "  num_env"]


def test_many_wrong_flags_are_a_list_too(command: CommandLine) -> None:
    flags = ("--agent.gamma", 7, "--total-steps", -3, "--curriculum.exploration", "all")
    code, out, err = command("train", *flags, "--num-evns", 4, "--agent.hidden-sizes", 8, "x")
    assert (code, out) == (2, "")
    first, *rest = err.splitlines()
    assert first == "stepladder: 5 problems in the options; nothing was started:"
    assert sorted(rest) == [
        "  --agent.gamma: must lie in [0, 1]; got 7.0. Give a number in that range.",
        "  --agent.hidden-sizes: must be an integer of at least 1; got 'x'. Give such a number.",
        "  --curriculum.exploration: must lie in [0, 1]; got 'all'. Give a number in that range.",
        "  --num-evns: unknown flag. Did you mean --num-envs?",
        "  --total-steps: must be an integer of at least 1; got -3. Give such a number.",
    ]


def test_flags_that_contradict_each_other_in_many_ways_are_a_list_too(
    command: CommandLine,
) -> None:
    argv = ("ledge", "--agent", "sac", "--source", "stages=simple", "--curriculum.threshold", 0.5)
    err = command("train", *argv).err
    assert err.startswith(
        "stepladder: 5 problems in the options; nothing was started:\n  --agent: "
    )


def test_without_torch_it_says_what_to_install(
    command: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_missing(name: str) -> None:
        raise ModuleNotFoundError(f"No module named 'torch' for {name}", name="torch")

    monkeypatch.setattr(finding, "import_module", is_missing)
    said = command.fails("train")
    assert said == (
        "trainings need the package torch, which is not installed. Install it with: "
        "pip install 'stepladder[train]'"
    )


class TestProcesses:
    pytestmark = processes

    def test_ctrl_c_saves_and_says_how_to_go_on(
        self, command: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("OMP_NUM_THREADS", "1")
        with running("train", *ENDLESS, cwd=tmp_path) as process:
            wait_until(lambda: _last_step() >= 200, process)
            os.killpg(process.pid, signal.SIGINT)
            out, err = process.communicate(timeout=40)
        assert (process.returncode, err) == (130, "")
        assert out.endswith(
            "everything is saved in run; resume with:\n  stepladder train --resume run\n"
        )
        reader = RunReader("run")
        assert reader.status == "interrupted"
        saved = reader.checkpoint_step()
        assert saved is not None
        assert f"\nstopped after {saved:,} steps" in out
        told = command("train", "--resume", "run", "--total-steps", saved + 100, "--json").out
        assert json.loads(told)["total_steps"] >= saved

    def test_after_being_killed_it_goes_on_from_the_last_checkpoint(
        self, command: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("OMP_NUM_THREADS", "1")
        argv = (*ENDLESS, "--checkpoints.every-steps", "64")
        with running("train", *argv, cwd=tmp_path) as process:
            wait_until(lambda: _last_checkpoint() >= 256, process)
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(timeout=40)
        saved = _last_checkpoint()
        code, out, err = command("train", "--resume", "run", "--total-steps", saved + 500, "--json")
        assert (code, err) == (0, "")
        told = json.loads(out)
        assert told["total_steps"] > saved
        assert told["refused_checkpoints"] == []
        steps = RunReader("run").metric("metric/epoch")[0].tolist()
        assert steps == sorted(set(steps))


def _last_step() -> int:
    try:
        steps = RunReader("run").metric("metric/agent_step")[0]
    except RunError:
        return 0
    return int(steps[-1]) if len(steps) else 0


def _last_checkpoint() -> int:
    try:
        return RunReader("run").checkpoint_step() or 0
    except RunError:
        return 0
