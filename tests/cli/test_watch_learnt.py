"""``stepladder watch`` of a run that has learnt something: its own policy plays."""

import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from cli.command_line import CommandLine
from cli.made_policies import HOCKEY, LEDGE, make_run
from stepladder.agents.dddqn.config import DDDQNConfig
from stepladder.agents.ppo.config import PPOConfig
from stepladder.agents.sac.config import SACConfig
from stepladder.cli.inputs.playable import Playable, make_env
from stepladder.cli.output.learnt import SinglePolicy, find_learnt
from stepladder.cli.output.playing import PlayCounts, Shutter, make_policy, play
from stepladder.errors import ConfigError
from stepladder.runs import Run
from stepladder.tasks import Task

SMALL = (8,)
FEW = ("--max-steps", 4, "--fps", 10, "--scale", 0.2)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make one run of each game and one of another env, once."""
    folder = tmp_path_factory.mktemp("watched")
    pole = PPOConfig(hidden_sizes=SMALL, recurrent=True)
    make_run(folder / "pole", "CartPole-v1", pole, later=(200, 300))
    make_run(
        folder / "ledge",
        LEDGE,
        DDDQNConfig(hidden_sizes=SMALL),
        source={"stages": ["simplest"], "per_stage": 3},
    )
    make_run(
        folder / "hockey",
        HOCKEY,
        SACConfig(hidden_sizes=SMALL),
        env_kwargs={"players": "both"},
        tasks=(Task("self-play", params={"opponent": "caller:newest"}),),
    )
    return folder


@pytest.mark.parametrize("name", ["pole", "ledge", "hockey"])
def test_a_run_is_played_by_its_own_policy(command: CommandLine, runs: Path, name: str) -> None:
    assert command("watch", runs / name, "--out", "own.gif", *FEW).code == 0
    for policy in ("learnt", runs / name):
        assert command("watch", runs / name, "--out", "a.gif", "--policy", policy, *FEW).code == 0
        assert Path("a.gif").read_bytes() == Path("own.gif").read_bytes()


def test_the_step_that_plays_is_said_and_can_be_chosen(command: CommandLine, runs: Path) -> None:
    films: dict[str, bytes] = {}
    said = {
        "last": "played by pole, step 300, the last",
        "best": "played by pole, step 100, the best",
        "200": "played by pole, step 200",
    }
    flags = ("--out", "a.gif", "--best", *FEW)
    for checkpoint, text in said.items():
        code, out, _ = command("watch", runs / "pole", "--checkpoint", checkpoint, *flags)
        assert (code, out.endswith(f"{text}\n")) == (0, True)
        films[checkpoint] = Path("a.gif").read_bytes()
        argv = ("CartPole-v1", "--policy", runs / "pole", "--checkpoint", checkpoint, *flags)
        assert command("watch", *argv).out.endswith(f"{text}\n")
        assert Path("a.gif").read_bytes() == films[checkpoint]
    assert len(set(films.values())) > 1
    # Its tasks are drawn as the curriculum of that checkpoint would draw them.
    assert command("watch", runs / "ledge", "--checkpoint", 100, *flags).code == 0


def test_a_policy_acts_in_its_own_way_unless_told_otherwise(
    command: CommandLine, runs: Path
) -> None:
    films: dict[str, bytes] = {}
    for flag in ("", "--drawn", "--best"):
        argv = ("watch", runs / "pole", "--out", "a.gif", *filter(None, [flag]), "--fps", 10)
        way = "best" if flag == "--best" else "drawn"
        assert f", 2 episodes, {way} actions" in command(*argv, "--episodes", 2).out
        films[flag] = Path("a.gif").read_bytes()
    assert films[""] == films["--drawn"] != films["--best"]
    assert "best actions" in command("watch", runs / "ledge", "--out", "a.gif", *FEW).out
    argv = ("watch", runs / "pole", "--out", "a.gif")
    assert "--drawn and --best exclude each other" in command.fails(*argv, "--drawn", "--best")
    said = command.fails(*argv, "--policy", "random", "--best")
    assert "are for trained policies, and --policy random is none. Leave --best out" in said


def test_somebody_else_may_play_instead(command: CommandLine, runs: Path) -> None:
    films: set[bytes] = set()
    for policy in ("random", "idle"):
        argv = ("watch", runs / "pole", "--out", "a.gif", "--policy", policy, *FEW)
        assert command(*argv).code == 0
        films.add(Path("a.gif").read_bytes())
    assert len(films) == 2


def test_an_env_by_itself_is_played_by_the_policy_of_a_run_or_a_checkpoint(
    command: CommandLine, runs: Path
) -> None:
    checkpoint = runs / "pole/checkpoints/step-000000000300"
    films: set[bytes] = set()
    for policy in (runs / "pole", checkpoint, checkpoint / "weights.safetensors"):
        argv = ("watch", "CartPole-v1", "--out", "a.gif", "--policy", policy, *FEW)
        assert command(*argv).code == 0
        films.add(Path("a.gif").read_bytes())
    assert len(films) == 1


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["CartPole-v1", "--policy", "learnt"], "CartPole-v1 has no trained policy yet"),
        (["bare", "--policy", "learnt"], "bare has no trained policy yet"),
        (
            ["CartPole-v1", "--policy", "RUNS/ledge"],
            "ledge cannot play CartPole-v1: its observation",
        ),
        (["CartPole-v1", "--policy", "bare"], "has no checkpoint of a training that can be used"),
        (["CartPole-v1", "--checkpoint", "best"], "is not a run, so it has no checkpoint 'best'"),
        (["RUNS/pole", "--checkpoint", "7"], "it has 100 (best), 200, 300 (last). Choose one"),
        (["CartPole-v1", "--policy", "clever"], "there is no policy 'clever'; there are random"),
    ],
)
def test_a_policy_that_cannot_play_says_why(
    command: CommandLine, runs: Path, argv: list[str], said: str
) -> None:
    with Run.create("bare", kind="training", config={"env": "CartPole-v1"}):
        pass
    words = [word.replace("RUNS", str(runs)) for word in argv]
    assert said in command.fails("watch", *words, "--out", "a.gif")


def test_without_torch_others_still_play(
    command: CommandLine, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("stepladder.cli.output.learnt", "stepladder.agents.player"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "torch", None)
    argv = ("watch", runs / "pole", "--out", "a.gif", *FEW)
    assert "need the package torch" in command.fails(*argv)
    assert command(*argv, "--policy", "random").code == 0


def test_the_policy_is_told_of_every_episode_and_acts_as_its_batch_would(runs: Path) -> None:
    env = make_env("CartPole-v1", {})
    learnt = find_learnt(str(runs / "pole"))
    assert SinglePolicy(learnt, env, "pole").way == "drawn"
    policy = SinglePolicy(learnt, env, "pole", way="best")
    begun: list[int] = []
    begin = policy.begin
    policy.begin = lambda: (begun.append(1), begin())[1]  # type: ignore[method-assign]
    counts = PlayCounts()
    pictures = play(
        Playable(name="pole", env=env),
        policy,
        num_episodes=2,
        max_steps=3,
        seed=0,
        shutter=Shutter(50, 50),
        end_pictures=0,
        counts=counts,
    )
    assert len(list(pictures)) == 8
    assert (len(begun), counts.num_episodes) == (2, 2)
    # The same rows at once: a policy with a memory that was told to begin.
    player = learnt.player(3)
    begin()
    seen = np.array([[0.1, 0, 0.02, 0], [0.2, 0, 0.03, 0]], dtype=np.float32)
    alone = [policy(row) for row in seen]
    together = [player.act_batch(np.repeat(row[None], 3, axis=0)) for row in seen]
    assert [row.tolist() for row in together] == [[action] * 3 for action in alone]
    env.close()


def test_whoever_plays_both_sides_sees_each_from_its_own(runs: Path) -> None:
    env = make_env(HOCKEY, {"players": "both"})
    policy = make_policy("learnt", Playable(name="rink", env=env, learnt=runs / "hockey"))
    one, two = np.random.default_rng(1).random((2, 18), np.float32)
    actions: Any = policy({"player_one": one, "player_two": two})
    swapped: Any = policy({"player_one": two, "player_two": one})
    # Rows of one batch may differ in the last bit.
    np.testing.assert_allclose(actions["player_one"], swapped["player_two"], rtol=1e-5)
    np.testing.assert_allclose(actions["player_two"], swapped["player_one"], rtol=1e-5)
    assert not np.allclose(actions["player_one"], actions["player_two"], rtol=1e-3)
    assert isinstance(env.action_space, gym.spaces.Dict)
    assert env.action_space.contains(actions)
    env.close()


def test_an_env_with_other_actions_is_refused(runs: Path) -> None:
    env = make_env(HOCKEY, {"actions": "discrete"})
    playable = Playable(name="rink", env=env, learnt=runs / "hockey")
    with pytest.raises(ConfigError, match=r"action_space is box \[4\], and here it is discrete 8"):
        make_policy(None, playable)
    env.close()
