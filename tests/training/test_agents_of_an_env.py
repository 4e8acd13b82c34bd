"""Several agents of one env learn with the same policy: whoever is there acts and learns."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from envs.scripted_parallel import Crowd, Life
from stepladder.agents import DDDQNConfig, PPOConfig
from stepladder.agents.base import VectorStep
from stepladder.curricula import LevelReplayConfig, UniformConfig
from stepladder.errors import ConfigError, EnvError
from stepladder.tasks import Task
from stepladder.training import resume, train
from stepladder.training.config import EvaluationConfig, TrainingConfig
from stepladder.training.evaluation import RandomPlayer, evaluate, spaces_of
from stepladder.training.evaluation.request import EvaluationRequest
from stepladder.training.loop import Trainer

LIVES = {"ann": Life(4), "bob": Life(2), "cid": Life(5, "truncated", first=2)}
"""Bob ends in the second step, in which cid enters; the env ends with cid."""

PLAYING = ["110", "110", "101", "101", "001", "000"]
"""Who takes part in each step of an episode, and in the one that resets the env."""


class Lively(Crowd):
    """Plays the lives above; a task says how much its rewards are worth."""

    def __init__(self) -> None:
        super().__init__(LIVES)
        self.worth = 1.0

    def set_task(self, task: Task) -> None:
        self.worth = task.params["worth"]

    def _reward(self, agent: Any, action: int) -> float:
        return self.worth * (1.0 + self.possible_agents.index(agent))


class Broken(Lively):
    """Bob gets a reward that is none."""

    def _reward(self, agent: Any, action: int) -> float:
        return float("nan") if agent == "bob" else 0.0


TASKS = (Task("dear", "dear", {"worth": 2.0}), Task("cheap", "cheap", {"worth": 1.0}))
RETURN = 4 * 1.0 + 2 * 2.0 + 3 * 3.0 + 3.0
"""Of all agents, cid's reward for entering included."""

CONFIG = TrainingConfig(
    env=Lively,
    num_envs=2,
    num_workers=0,
    total_steps=120,
    tasks=TASKS,
    return_threshold=RETURN + 1.0,
    curriculum=UniformConfig(),
    agent=PPOConfig(hidden_sizes=(8,), rollout_steps=48, minibatch_size=16),
    epoch_steps=60,
    evaluation=EvaluationConfig(every_steps=None, num_games=3),
)


def test_every_agent_is_a_row_that_waits_while_it_is_not_there() -> None:
    steps: list[VectorStep] = []
    trainer = Trainer(CONFIG)
    records: list[Any] = []
    trainer.curriculum.add_listener(lambda batch: records.extend(batch.copy()))
    with closing(trainer):
        remember = trainer.agent.remember
        trainer.agent.remember = lambda step: (steps.append(step), remember(step))[1]
        trainer.begin()
        for _ in range(2 * len(PLAYING)):
            trainer.advance()
    for number, step in enumerate(steps):
        expected = [word == "1" for word in PLAYING[number % len(PLAYING)] * 2]
        assert step.is_playing.tolist() == expected
        ended = step.terminated | step.truncated
        assert not (ended & ~step.is_playing).any()
        # A row shows its agent's last observation, and zeros while the agent is away.
        assert step.next_observations[step.is_playing].any(axis=1).all()
    assert [int(step.terminated.sum()) for step in steps[:6]] == [0, 2, 0, 2, 0, 0]
    assert [int(step.truncated.sum()) for step in steps[:6]] == [0, 0, 0, 0, 2, 0]
    # Steps of agents are what is counted; of episodes there is one per env.
    assert trainer.num_steps == 2 * 2 * sum(word.count("1") for word in PLAYING)
    assert [int(record["length"]) for record in records] == [5] * 4
    assert {float(record["episode_return"]) for record in records} <= {RETURN, 2 * RETURN}
    assert trainer.episodes.num_ended == 4
    assert all(
        (record["success"] == 1.0) == (record["episode_return"] > RETURN) for record in records
    )


@pytest.mark.parametrize(
    "agent",
    [
        PPOConfig(hidden_sizes=(8,), rollout_steps=48, minibatch_size=16, recurrent=True),
        DDDQNConfig(
            hidden_sizes=(8,), batch_size=8, buffer_size=100, warmup_steps=16, num_step_returns=3
        ),
    ],
    ids=lambda agent: agent.kind,
)
def test_they_are_trained_evaluated_and_resumed(agent: Any, tmp_path: Path) -> None:
    config = replace(CONFIG, agent=agent)
    result = train(config, run_folder=tmp_path / "run")
    assert 120 <= result.total_steps < 126
    assert result.total_gradient_steps > 0
    total = result.evaluation_results[-1]["total"]
    # Games of envs: the tasks are worth different returns, so one of them succeeds.
    assert (total["num_games"], total["num_steps"]) == (6, 30)
    rates = {part["name"]: part["rate"]["value"] for part in total["parts"]}
    assert rates == {"dear": 1.0, "cheap": 0.0}
    assert total["mean_return"]["value"] == 1.5 * RETURN
    again = resume(tmp_path / "run", total_steps=200)
    assert again.total_steps >= 200
    assert again.total_episodes > result.total_episodes


def test_scores_of_an_env_are_means_over_the_agents_that_took_part() -> None:
    curriculum = LevelReplayConfig(scored_by="value_loss")
    trainer = Trainer(replace(CONFIG, curriculum=curriculum, num_envs=1))
    reported: list[tuple[Any, Any]] = []
    with closing(trainer):
        scores: Any = trainer._scores
        report = scores.report
        scores.report = lambda *given: (reported.append(given), report(*given))[1]
        trainer.begin()
        while len(reported) < 2:
            trainer.advance()
        assert scores.num_scored == trainer.curriculum.num_observed > 2
    words = [
        "".join("1" if there else "0" for there in step[0]) for _, took in reported for step in took
    ]
    assert words == (PLAYING * 10)[: len(words)]
    assert reported[0][0].shape == (16, 1, 3)


def test_a_time_limit_ends_the_episode_of_every_agent() -> None:
    trainer = Trainer(replace(CONFIG, max_episode_steps=3))
    lengths: list[int] = []
    trainer.curriculum.add_listener(lambda batch: lengths.extend(batch["length"].tolist()))
    with closing(trainer):
        trainer.begin()
        for _ in range(8):
            trainer.advance()
    assert lengths == [3] * 4


def test_a_player_forgets_before_an_agent_enters() -> None:
    begun: list[Any] = []

    class Watching(RandomPlayer):
        def begin(self, rows: Any = None) -> None:
            begun.append(None if rows is None else rows.tolist())

    request = EvaluationRequest.of(replace(CONFIG, tasks=(), return_threshold=1.0))
    seen, done = spaces_of(request)
    assert (seen.shape, done.n) == ((4,), 5)  # type: ignore[attr-defined]
    one_game = replace(request, num_games=1)
    result = evaluate(lambda num_rows: Watching(done, num_rows), one_game)
    nobody, cid = [False] * 3, [False, False, True]
    assert begun == [None, nobody, cid, nobody, nobody]
    assert result.total.num_steps == 5


def test_what_an_agent_gives_that_is_no_number_is_said_with_its_name() -> None:
    with pytest.raises(EnvError, match="the reward of agent 'bob' of env 0 is nan"):
        train(replace(CONFIG, env=Broken, tasks=(), return_threshold=None))


def test_agents_that_act_in_turn_are_refused() -> None:
    class InTurn(Crowd):
        def agent_iter(self) -> None: ...

    with pytest.raises(ConfigError, match=r"the agents act in turn \(AEC\)"):
        train(env=InTurn, num_envs=1, num_workers=0)
