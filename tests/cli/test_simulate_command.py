"""``stepladder simulate``: as a user tries it."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cli.command_line import SOURCE, CommandLine, finished, running, wait_until
from stepladder.errors import RunError
from stepladder.runs import RunReader
from stepladder.simulator.dynamics import RECIPES

SHORT = ("--scenario", "chain-3", "--num-epochs", "4", "--engine", "direct")

processes = [pytest.mark.processes, pytest.mark.timeout(60)]


@pytest.mark.slow
def test_by_default_learning_progress_plays_the_ten_chain_and_is_kept(
    command: CommandLine,
) -> None:
    code, out, err = command("simulate")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "learning-progress on chain-10, 8 envs, seed 0"
    assert lines[1].startswith("epoch  10/100      2,000 plays  mastered")
    assert "mastered all 10 learnable tasks in" in out
    folder = "runs/chain-10-learning-progress-0"
    assert lines[-1] == f"kept in {folder}; see stepladder explain {folder}"
    reader = RunReader(folder)
    assert (reader.kind, reader.status, reader.seed) == ("simulation", "finished", 0)
    assert reader.config["simulation"]["engine"] == "envs"
    assert reader.config["simulation"]["num_envs"] == 8
    assert reader.metric("metric/epoch")[1].tolist() == list(range(1, 101))


def test_a_verdict_in_words_ends_it(command: CommandLine) -> None:
    out = command("simulate", "uniform", "--scenario", "impossible-4", "--num-epochs", 2).out
    assert re.search(
        r"^stalls at task \d \(skill 0\.\d\d\): \d of 4 tasks mastered in 400", out, re.M
    )
    assert re.search(r"\d\d% of samples went to impossible tasks", out)


def test_a_curriculum_has_flags_of_its_own_beside_those_of_the_simulation(
    command: CommandLine,
) -> None:
    code, out, _ = command(
        "simulate", "--seed", 5, "frontier", "--probing", 0.25, *SHORT, "--out", "kept"
    )
    assert code == 0
    assert out.startswith("frontier on chain-3, 8 envs, seed 5\n")
    config = RunReader("kept").config
    assert config["curriculum"]["type"] == "frontier"
    assert config["curriculum"]["probing"] == 0.25
    assert config["simulation"]["seed"] == 5


def test_the_default_curriculum_needs_no_name_for_its_flags(command: CommandLine) -> None:
    assert command("simulate", "--fast-halflife-episodes", 6, *SHORT, "--out", "kept").code == 0
    assert RunReader("kept").config["curriculum"]["fast_halflife_episodes"] == 6.0


@pytest.mark.parametrize(
    "curriculum",
    [
        "uniform",
        "learnability",
        "level-replay",
        "advantage-bandit",
        "staged",
        "frontier-features",
        "learning-progress-seed",
        "learning-progress-mature",
    ],
)
def test_every_curriculum_can_be_tried(command: CommandLine, curriculum: str) -> None:
    code, out, err = command("simulate", curriculum, *SHORT, "--json")
    assert (code, err) == (0, "")
    told = json.loads(out)
    assert told["curriculum"] == curriculum
    assert told["run"] == f"runs/chain-3-{curriculum}-0"


def test_json_is_one_line_that_says_how_it_ended(command: CommandLine) -> None:
    code, out, err = command("simulate", "uniform", *SHORT, "--json", "--no-keep", "--seed", 3)
    assert (code, err) == (0, "")
    assert out.count("\n") == 1
    told = json.loads(out)
    assert told["scenario"] == "chain-3"
    assert (told["seed"], told["num_envs"], told["plays"]) == (3, 8, 800)
    assert told["num_learnable"] == 3
    assert told["run"] is None
    assert not Path("runs").exists()
    # The same seed gives the same, another one does not.
    assert command("simulate", "uniform", *SHORT, "--json", "--no-keep", "--seed", 3).out == out
    other = command("simulate", "uniform", *SHORT, "--json", "--no-keep", "--seed", 4).out
    assert json.loads(other)["mean_performance"] != told["mean_performance"]


def test_a_run_is_never_lost_to_the_next_one(command: CommandLine) -> None:
    first = json.loads(command("simulate", *SHORT, "--json").out)
    second = json.loads(command("simulate", *SHORT, "--json").out)
    assert first["run"] == "runs/chain-3-learning-progress-0"
    assert second["run"] == "runs/chain-3-learning-progress-0-2"
    said = command.fails("simulate", *SHORT, "--out", first["run"])
    assert said == (
        "runs/chain-3-learning-progress-0 holds a run already. Choose another folder with --out, "
        "or replace the run with --overwrite."
    )
    created = Path(first["run"], "config.json").stat().st_ino
    third = json.loads(command("simulate", *SHORT, "--json", "--overwrite").out)
    assert third["run"] == first["run"]
    assert Path(first["run"], "config.json").stat().st_ino != created


def test_a_graph_in_a_file_is_a_scenario(command: CommandLine) -> None:
    Path("diamond.json").write_text('{"parents": [[], [0], [0], [1, 2]]}')
    code, out, _ = command(
        "simulate", "staged", "--scenario", "diamond.json", "--num-epochs", 9, "--json"
    )
    told = json.loads(out)
    assert code == 0
    assert (told["scenario"], told["num_learnable"]) == ("diamond", 4)
    assert told["verdict"].startswith("mastered all 4 learnable tasks in ")
    assert RunReader(told["run"]).config["simulator"]["graph"]["parents"][3] == [1, 2]


def test_a_learner_that_generalises_counts_env_steps(command: CommandLine) -> None:
    short = ("--num-epochs", 2, "--samples-per-epoch", 500, "--engine", "direct")
    code, out, err = command("simulate", "uniform", "--scenario", "levels-2x3", *short)
    assert (code, err) == (0, "")
    assert "8,000 steps  mastered" in out
    assert "on held-out tasks after 8000 env steps" in out


def test_a_curriculum_from_a_file(command: CommandLine) -> None:
    Path("two-phases.json").write_text(
        json.dumps(
            {
                "type": "phased",
                "phases": [
                    {"name": "easy", "mixture": {"taskclass0": 1.0}, "episodes": 100},
                    {"name": "all"},
                ],
            }
        )
    )
    told = json.loads(command("simulate", "from-file", "two-phases.json", *SHORT, "--json").out)
    assert told["curriculum"] == "two-phases"
    (event,) = RunReader(told["run"]).events("phase_changed")
    assert "easy" in event.text


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_brings_its_learner_and_its_numbers(command: CommandLine, name: str) -> None:
    taken = RECIPES[name]
    code, out, err = command("simulate", "uniform", "--recipe", name, "--num-epochs", 2, "--json")
    assert (code, err) == (0, "")
    told = json.loads(out)
    assert told["scenario"] == f"chain-{taken.num_tasks}-{name}"
    assert told["num_envs"] == taken.num_envs
    assert told["plays"] == 2 * taken.num_envs * taken.dynamics.samples_per_epoch
    config = RunReader(told["run"]).config
    assert config["simulator"]["dynamics"]["kind"] == "Epochwise"
    assert config["simulator"]["dynamics"]["gamma"] == taken.dynamics.gamma
    assert config["simulator"]["noise"]["task_noise_std"] == taken.noise.task_noise_std


def test_what_is_given_beside_a_recipe_counts(command: CommandLine) -> None:
    told = json.loads(
        command(
            *("simulate", "--recipe=train", "uniform", "--num-envs", 8, "--num-epochs", 3),
            *("--samples-per-epoch", 5, "--scenario", "grid-2x2", "--json"),
        ).out
    )
    assert (told["scenario"], told["num_envs"], told["plays"]) == ("grid-2x2-train", 8, 120)
    simulator = RunReader(told["run"]).config["simulator"]
    assert simulator["dynamics"]["samples_per_epoch"] == 5


def test_the_help_names_every_recipe(command: CommandLine) -> None:
    out = " ".join(command("simulate", "--help").out.replace("│", " ").split())
    assert f"earlier simulator: {', '.join(list(RECIPES)[:-1])} or {list(RECIPES)[-1]}." in out


def test_records_and_tensorboard_are_kept_on_request(command: CommandLine) -> None:
    pytest.importorskip("tensorboard")
    assert command("simulate", *SHORT, "--keep-records", "--tensorboard").code == 0
    assert RunReader("runs/chain-3-learning-progress-0").num_records == 800
    (events,) = Path("runs/tensorboard/chain-3-learning-progress-0").iterdir()
    assert b"overview/mean_performance" in events.read_bytes()


def test_more_tasks_than_plots_are_no_reason_to_warn(
    command: CommandLine, caplog: pytest.LogCaptureFixture
) -> None:
    code, _, err = command(
        *("simulate", "uniform", "--scenario", "chain-150", "--num-epochs", 2),
        *("--engine", "direct", "--no-keep"),
    )
    assert (code, err, caplog.records) == (0, "", [])


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--bogus", "3"], "--bogus: unknown flag."),
        (["fronti"], "Unrecognized options: fronti. Available subcommands: learning-progress,"),
        (["frontier", "--probing", "-1"], "probing must lie in (0, 1000]; got -1.0"),
        (["--num-envs", "0"], "--num-envs must be an integer of at least 1; got 0"),
        (["--engine", "warp"], "--engine must be 'compiled', 'direct' or 'envs'; got 'warp'."),
        (["--scenario", "chain-x"], "there is no scenario 'chain-x'; expected one of chain-N,"),
        (["--scenario", "no.json"], "no.json cannot be read: No such file"),
        (["--recipe", "soup"], "there is no recipe 'soup'; there are train,"),
        (
            ["--recipe", "train", "--scenario", "levels-2x3"],
            "a recipe is for a graph of tasks, and 'levels-2x3' has none",
        ),
        (["--recipe"], "Missing value for argument '--recipe'"),
        (["from-file"], "Missing from stepladder simulate from-file: FILE"),
        (["--no-keep", "--tensorboard"], "--tensorboard needs a run; leave out --no-keep."),
        (["--no-keep", "--keep-records"], "--keep-records needs a run; leave out --no-keep."),
        (["--out", "full"], "full is not empty and has no run: it has 'thesis.tex'"),
        (["staged", "--engine", "compiled"], "Staged has no compiled form"),
        (["frontier", "--features", "size"], "'size'"),
        (
            ["--engine", "direct", "--num-workers", "1"],
            "engine 'direct' has no envs to put into workers",
        ),
    ],
)
def test_a_mistake_is_one_line_and_leaves_nothing_behind(
    command: CommandLine, argv: list[str], said: str
) -> None:
    Path("full").mkdir()
    Path("full/thesis.tex").write_text("years of work")
    assert said in command.fails("simulate", *argv)
    assert sorted(str(path) for path in Path().rglob("*")) == ["full", "full/thesis.tex"]


def test_wrong_flags_of_curriculum_and_options_are_one_list(command: CommandLine) -> None:
    code, _, err = command(
        *("simulate", "frontier", "--exploration", 5, "--max-share", "x", "--num-envs", 0)
    )
    assert code == 2
    assert [line.split(":")[0] for line in err.splitlines()[1:]] == [
        "  --num-envs",
        "  --exploration",
        "  --max-share",
    ]


class TestProcesses:
    pytestmark = processes

    def test_workers_with_shared_memory_end_as_they_should(self, tmp_path: Path) -> None:
        argv = ("simulate", "--num-workers", "1", "--num-envs", "2", "--num-epochs", "3", "--json")
        code, out, err = finished(*argv, "--no-keep", cwd=tmp_path)
        assert (code, err) == (0, "")
        here = finished(*argv[:1], *argv[3:], "--no-keep", cwd=tmp_path)
        assert json.loads(out) == json.loads(here.out)

    @pytest.mark.parametrize("more", [(), ("--num-workers", "1", "--num-envs", "2")])
    def test_an_interruption_is_quiet_and_leaves_a_run_that_can_be_read(
        self, tmp_path: Path, more: tuple[str, ...]
    ) -> None:
        argv = ("simulate", *more, "--num-epochs", "100000", "--out", "run")
        with running(*argv, cwd=tmp_path) as process:
            wait_until(lambda: _num_epochs(tmp_path / "run") >= 10, process)
            os.killpg(process.pid, signal.SIGINT)
            out, err = process.communicate(timeout=40)
        assert (process.returncode, err) == (130, "")
        assert "Traceback" not in out
        reader = RunReader(tmp_path / "run")
        assert reader.status == "interrupted"
        # What was learned until then is told, and kept up to the last epoch.
        assert "interrupted after" in out
        assert "kept in run" in out
        assert reader.checkpoint_step() == reader.metric("metric/agent_step")[0][-1]
        assert reader.metric("metric/epoch")[1][-1] >= 10
        explained = finished("explain", "run", cwd=tmp_path)
        assert explained.code == 0
        assert "LearningProgress: 10 tasks" in explained.out

    def test_a_reader_that_leaves_ends_it_quietly(self, tmp_path: Path) -> None:
        # A line after every thousandth epoch: it has to be told by its next one.
        argv = ("simulate", "--num-epochs", "10000", "--engine", "compiled", "--no-keep")
        with running(*argv, cwd=tmp_path) as process:
            assert process.stdout is not None
            process.stdout.close()
            process.stdout = None
            _, err = process.communicate(timeout=40)
        assert (process.returncode, err) == (141, "")

    def test_weights_and_biases_offline(self, tmp_path: Path) -> None:
        pytest.importorskip("wandb")
        done = subprocess.run(
            [
                *(sys.executable, "-m", "stepladder", "simulate", *SHORT),
                *("--wandb", "project", "--wandb-mode", "offline"),
            ],
            env={
                **{key: value for key, value in os.environ.items() if "WANDB" not in key},
                "PYTHONPATH": str(SOURCE),
                "HOME": str(tmp_path / "home"),
                "WANDB_ERROR_REPORTING": "false",
            },
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=50,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        (path,) = tmp_path.glob("runs/wandb/offline-run-*/run-*.wandb")
        assert b"overview/mean_performance" in path.read_bytes()


def _num_epochs(folder: Path) -> int:
    try:
        return len(RunReader(folder).metric("metric/epoch")[0])
    except RunError:
        return 0
