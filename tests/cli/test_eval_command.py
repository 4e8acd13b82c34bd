"""``stepladder eval``: a policy from a run, a checkpoint or a file, on held-out games."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from cli.command_line import CommandLine
from cli.made_policies import HOCKEY, LEDGE, make_run
from stepladder.agents.dddqn.config import DDDQNConfig
from stepladder.agents.ppo.config import PPOConfig
from stepladder.agents.sac.config import SACConfig
from stepladder.runs import Run
from stepladder.tasks import Task
from stepladder.training.config import EvaluationConfig

SMALL = (8,)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make runs of every kind of agent, once."""
    folder = tmp_path_factory.mktemp("runs")
    few = EvaluationConfig(num_games=4)
    make_run(folder / "sac", HOCKEY, SACConfig(hidden_sizes=SMALL), evaluation=few)
    make_run(
        folder / "dqn",
        HOCKEY,
        DDDQNConfig(hidden_sizes=SMALL),
        env_kwargs={"actions": "discrete", "fineness": 3},
        evaluation=few,
    )
    make_run(
        folder / "ledge",
        LEDGE,
        PPOConfig(hidden_sizes=SMALL, recurrent=True),
        env_kwargs={"shaping": True, "time_limit": 30},
        source={"stages": ["simplest", "simpler"]},
    )
    pole = PPOConfig(hidden_sizes=SMALL)
    make_run(folder / "pole", "CartPole-v1", pole, later=(200, 300, 1400), evaluation=few)
    return folder


def evaluated(command: CommandLine, *argv: object) -> dict[str, Any]:
    code, out, err = command("eval", *argv, "--json")
    assert (code, err) == (0, "")
    assert out.count("\n") == 1
    return json.loads(out)


def test_hockey_is_played_against_both_opponents_from_both_sides(
    command: CommandLine, runs: Path
) -> None:
    code, out, err = command("eval", runs / "sac")
    assert (code, err) == (0, "")
    title, head, *lines = out.splitlines()
    moment = "step 100, the last"
    assert title == f"sac (SAC) on {HOCKEY}: {moment}, 8 games, own way: best actions, seed 10000"
    assert " ".join(head.split()) == "won games random drawn best (own way) draw lost"
    assert [line.split()[:2] for line in lines] == [
        ["weak", "4"],
        ["starts=one", "2"],
        ["starts=two", "2"],
        ["strong", "4"],
        ["starts=one", "2"],
        ["starts=two", "2"],
        ["all", "8"],
    ]


def test_the_same_policy_has_the_same_result_by_whatever_name(
    command: CommandLine, runs: Path
) -> None:
    (checkpoint,) = (folder for folder in (runs / "sac/checkpoints").iterdir() if folder.is_dir())
    weights = Path("weights.safetensors")
    weights.write_bytes((checkpoint / weights.name).read_bytes())
    named = [
        evaluated(command, runs / "sac", "--out", "all.json"),
        evaluated(command, checkpoint),
        evaluated(command, checkpoint / weights.name),
        evaluated(command, weights, "--env-id", HOCKEY, "--episodes", 4),
    ]
    assert [document["policy"] for document in named] == [
        "sac (SAC)",
        f"sac/{checkpoint.name} (SAC)",
        f"sac/{checkpoint.name} (SAC)",
        "weights.safetensors (SAC)",
    ]
    assert [document["step"] for document in named] == [100, 100, 100, None]
    for document in named:
        assert document["total"] == named[0]["total"]
    assert json.loads(Path("all.json").read_text()) == named[0]


def test_levels_that_were_held_out_are_played_by_a_policy_with_a_memory(
    command: CommandLine, runs: Path
) -> None:
    best = evaluated(command, runs / "ledge", "--best")
    assert (best["way"], best["levels"], best["beside"]) == ("best", "validation", [])
    assert [(group["name"], group["num_games"]) for group in best["total"]["parts"]] == [
        ("simplest", 16),
        ("simpler", 16),
    ]
    simplest = ("--labels", "simplest", "--episodes", 20)
    out = command("eval", runs / "ledge", *simplest, "--best", "--each").out
    assert "  simplest/00_flat.txt      1   " in out
    assert "best actions, levels of validation" in out
    assert "\nall " not in out
    # PPO draws its actions; each level twice, which is no more levels.
    every = evaluated(command, runs / "ledge", *simplest, "--picture", "learnt.svg")
    picture = Path("learnt.svg").read_text()
    for words in ("ledge (PPO) on", ">drawn (own way)<", ">random<", ">simplest<", "solved, with"):
        assert words in picture
    assert [one["way"] for one in (every, *every["beside"])] == ["drawn", "best", "random"]
    assert (every["total"]["num_games"], every["total"]["num_trials"]) == (32, 16)
    drawn = evaluated(command, runs / "ledge", *simplest, "--drawn")
    assert drawn == {**every, "beside": []}
    # Other stages change nothing, nor do other ways.
    both = evaluated(command, runs / "ledge", "--drawn", "--episodes", 20)
    assert both["total"]["parts"][0] == every["total"]["parts"][0]
    assert best["total"]["parts"][0] == every["beside"][0]["total"]["parts"][0]


def test_final_tables_are_of_other_levels(command: CommandLine, runs: Path) -> None:
    flags = ("--labels", "simplest", "--best", "--levels")
    test = evaluated(command, runs / "ledge", *flags, "test")
    assert (test["levels"], test["total"]["num_games"]) == ("test", 64)
    assert "levels must be validation or test; got 'mine'" in command.fails(
        "eval", runs / "ledge", *flags, "mine"
    )


def test_random_play_plays_as_many_games_as_it_is_asked_for(command: CommandLine) -> None:
    argv = ("random", "--env-id", LEDGE, "--labels", "simplest", "--episodes", 80)
    head, columns, row = command("eval", *argv).out.splitlines()
    assert head == (f"random on {LEDGE}: 80 games, random play, levels of validation, seed 10000")
    assert columns.split()[:3] == ["games", "distinct", "solved"]
    assert row.split()[:3] == ["simplest", "80", "16"]


def test_torch_computes_in_as_many_threads_as_in_training(
    command: CommandLine, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch")
    asked: list[int] = []
    monkeypatch.setattr(torch, "set_num_threads", asked.append)
    before = torch.get_num_threads()
    evaluated(command, runs / "pole", "--best", "--episodes", 1)
    assert asked == [1, before]


def test_any_other_env_is_played_as_it_comes(command: CommandLine, runs: Path) -> None:
    one = evaluated(command, runs / "pole", "--episodes", 3)
    assert (one["env"], one["total"]["num_games"], one["total"]["rate"]) == ("CartPole-v1", 3, None)
    assert evaluated(command, runs / "pole", "--episodes", 3) == one
    assert evaluated(command, runs / "pole", "--episodes", 3, "--seed", 7) != one
    out = command("eval", runs / "pole").out
    assert " ".join(out.splitlines()[1].split()) == "return games random drawn (own way) best"
    assert out.splitlines()[2].startswith("all         4 ")
    out = command("eval", runs / "pole", "--best").out
    assert " ".join(out.splitlines()[1].split()) == "games return 95 % interval length"


def test_the_best_checkpoint_or_one_of_a_step_is_played_if_asked_for(
    command: CommandLine, runs: Path
) -> None:
    checkpoints = {
        "last": "step 1,400, the last",
        "best": "step 100, the best",
        "300": "step 300",
        "1,400": "step 1,400, the last",
    }
    for checkpoint, moment in checkpoints.items():
        out = command("eval", runs / "pole", "--checkpoint", checkpoint).out
        assert out.startswith(
            f"pole (PPO) on CartPole-v1: {moment}, 4 games, own way: drawn actions"
        )
    results = {
        name: evaluated(command, runs / "pole", "--best", "--checkpoint", name)
        for name in ("best", "100", "300", "last")
    }
    assert results["best"]["step"] == 100
    assert results["best"] == results["100"]
    assert results["300"]["total"] != results["last"]["total"]


def test_other_policies_are_opponents_even_with_another_kind_of_actions(
    command: CommandLine, runs: Path
) -> None:
    argv = (runs / "sac", "--opponents", "weak", runs / "dqn", runs / "sac", "random")
    total = evaluated(command, *argv)["total"]
    assert [group["name"] for group in total["parts"]] == ["weak", "dqn", "sac", "random"]
    # The other way round, and among those of one kind.
    assert evaluated(command, runs / "dqn", "--opponents", runs / "sac")["total"]["num_games"] == 4
    assert evaluated(command, runs / "dqn", "--opponents", runs / "dqn")["total"]["num_games"] == 4


def test_opponents_of_one_name_are_told_apart(command: CommandLine, runs: Path) -> None:
    Path("weak").symlink_to(runs / "sac")
    argv = (runs / "sac", "--opponents", "weak", "./weak", runs / "sac", runs / "sac")
    total = evaluated(command, *argv, "--episodes", 2)["total"]
    assert [group["name"] for group in total["parts"]] == ["weak", "weak 2", "sac", "sac 2"]


def test_random_play_needs_no_policy_and_no_torch(
    command: CommandLine, monkeypatch: pytest.MonkeyPatch, runs: Path
) -> None:
    for name in ("stepladder.cli.output.learnt", "stepladder.agents.player"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "torch", None)
    flags = ("--env-id", HOCKEY, "--env", "keep_mode=false", "--episodes", 2)
    assert evaluated(command, "random", *flags)["policy"] == "random"
    said = command.fails("eval", runs / "pole")
    assert "need the package torch, which is not installed. Install it with: pip install" in said


def test_a_file_of_somebody_else_is_left_alone(command: CommandLine, runs: Path) -> None:
    Path("mine.json").write_text("{}")
    said = command.fails("eval", runs / "pole", "--out", "mine.json")
    assert "was not written by this command and is not replaced" in said
    for _ in range(2):
        assert command("eval", runs / "pole", "--episodes", 1, "--out", "new/ours.json").code == 0
    assert json.loads(Path("new/ours.json").read_text())["policy"] == "pole (PPO)"


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ([], "no policy was given, and one can be evaluated"),
        (["nowhere"], "there is no 'nowhere'. Name the folder of a run, a checkpoint in it"),
        (["random"], "Name the env with --env-id, such as CartPole-v1"),
        (["random", "--env-id", "Nope-v1"], "the env 'Nope-v1' cannot be found: Environment"),
        (["random", "--env-id", "CartPole-v1", "--env", "x=1"], "CartPole-v1 raised TypeError"),
        (["random", "--env-id", "CartPole-v1", "--env", "x"], "--env must be KEY=VALUE; got 'x'"),
        (["bare"], "has no checkpoint of a training that can be used"),
        (["RUNS/sac", "--episodes", "3"], "num_games must be even in hockey"),
        (["RUNS/sac", "--episodes", "0"], "episodes must be an integer of at least 1"),
        (["RUNS/sac", "--seed", "-1"], "seed must be an integer of at least 0"),
        (["RUNS/sac", "--labels", "medium"], "stepladder/Hockey-v0 is evaluated by opponent"),
        (["RUNS/sac", "--opponents", "weak", "weak"], "the opponent weak is given twice"),
        (["RUNS/sac", "--opponents", "nobody"], "there is no 'nobody'"),
        (["RUNS/sac", "--opponents", "RUNS/pole"], "pole cannot play stepladder/Hockey-v0: its"),
        (["RUNS/sac", "--env-id", LEDGE], "observation_space is box [18], and here it is dict"),
        (["RUNS/ledge", "--labels", "steep"], "There is no stage 'steep'"),
        (["RUNS/pole", "--drawn", "--best"], "--drawn and --best exclude each other"),
        (["RUNS/pole", "--levels", "test"], "levels cannot be chosen; got 'test'"),
        (["RUNS/ledge", "--opponents", "weak"], "--opponents is for games for two players"),
        (["RUNS/pole", "--checkpoint", "worst"], "must be last, best or a step; got 'worst'"),
        (["RUNS/pole", "--checkpoint", "9" * 20], "must be last, best or a step; got '999"),
        (["RUNS/pole", "--checkpoint", "7"], "it has 100 (best), 300, 1,400 (last). Choose one"),
        (["RUNS/sac", "--checkpoint", "best"], "sac has no best checkpoint: none of its evaluat"),
        (["RUNS/pole/config.json", "--checkpoint", "best"], "is not a run, so it has no checkp"),
        (["random", "--checkpoint", "best"], "random play has no checkpoint 'best'"),
        (["RUNS/pole", "--device", "tpu"], "device must be 'cpu', 'cuda', 'cuda:1' or 'auto'"),
        (["RUNS/pole/config.json"], "is not a readable safetensors file"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_no_file(
    command: CommandLine, runs: Path, argv: list[str], said: str
) -> None:
    with Run.create("bare", kind="training", config={"env": "CartPole-v1"}):
        pass
    argv_here = [word.replace("RUNS", str(runs)) for word in argv]
    assert said in command.fails("eval", *argv_here, "--out", "a.json")
    assert not Path("a.json").exists()


def test_tasks_of_a_training_on_another_env_are_named(command: CommandLine, runs: Path) -> None:
    make_run(
        Path("tasked"), "CartPole-v1", PPOConfig(hidden_sizes=SMALL), tasks=(Task("pole", "poles"),)
    )
    said = command.fails("eval", "tasked", "--episodes", 2)
    assert "offers no way to receive a task" in said
