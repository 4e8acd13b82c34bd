"""The simulated tasks as an env: Gymnasium's own checks, and the ways in which its users use it."""

import re
from collections import defaultdict
from dataclasses import dataclass

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

from stepladder.curricula import LearningProgress, Uniform
from stepladder.curricula.reporting.meter import CurriculumMeter
from stepladder.envs import CurriculumEnv
from stepladder.envs.vector import CurriculumVectorEnv
from stepladder.errors import ChannelError, ConfigError, TaskError
from stepladder.simulator import Noise, SkillView, TaskDependencyEnv, TaskDependencySimulator
from stepladder.simulator.env import node_of
from stepladder.stats.rollout import accumulate_rollout_stats, process_training_stats
from stepladder.sync.segment import Segment
from stepladder.tasks import Task

# A learner whose reward says which task was played: the skill, and nothing else.
TELLING = Noise(reward="skill")
SKILLS = {0: 0.1, 1: 0.3, 2: 0.5, 3: 0.7, 4: 0.9}


def telling(**settings) -> TaskDependencySimulator:
    return TaskDependencySimulator(5, noise=TELLING, start=SKILLS, **settings)


@dataclass
class Config:
    """What a user of the ancestor hands over: anything with a label."""

    label: str


def test_it_passes_gymnasiums_own_check():
    # An env that teaches cannot repeat itself, which is what the check asks for.
    env = TaskDependencyEnv(TaskDependencySimulator(3), learns=False)
    check_env(env, skip_render_check=True)


def test_an_episode_is_one_play():
    simulator = telling()
    env = TaskDependencyEnv(simulator, task="taskclass3")
    observation, info = env.reset(seed=1)
    assert observation.tolist() == [0.0]
    assert info == {}
    observation, reward, terminated, truncated, info = env.step(0)
    assert (observation.tolist(), terminated, truncated) == ([0.0], True, False)
    assert reward == pytest.approx(0.7)
    play = simulator.play(3, seed=1)
    assert info["is_success"] is (play.success == 1.0)
    assert info["task_dependency"] == {
        "performance": pytest.approx(0.7),
        "reward": pytest.approx(0.7),
        "success": play.success,
        "task_class": 3,
        "length": 1,
    }


def test_a_play_teaches_the_learner_unless_something_else_does():
    simulator = TaskDependencySimulator(2)
    env = TaskDependencyEnv(simulator)
    env.reset(seed=0)
    env.step(0)
    assert simulator.num_plays == 1
    # 0.01 + 0.05·0.99, a hair of it forgotten.
    assert simulator.P[0] == pytest.approx(0.0595 * (1 - 2e-5))
    watching = TaskDependencyEnv(simulator, learns=False)
    watching.reset(seed=0)
    watching.step(0)
    assert simulator.num_plays == 1


def test_the_seed_of_an_episode_decides_its_outcome():
    def course(seed):
        env = TaskDependencyEnv(TaskDependencySimulator(1, start={0: 0.5}), learns=False)
        env.reset(seed=seed)
        outcomes = [env.step(0)[4]["is_success"]]
        for _ in range(40):
            env.reset()
            outcomes.append(env.step(0)[4]["is_success"])
        return outcomes

    assert course(5) == course(5) != course(6)


def test_a_step_without_a_reset_is_refused():
    env = TaskDependencyEnv(TaskDependencySimulator(2))
    with pytest.raises(gym.error.ResetNeeded, match="the last episode has ended"):
        env.step(0)
    env.reset(seed=0)
    assert env.is_playing
    env.step(0)
    assert not env.is_playing
    with pytest.raises(gym.error.ResetNeeded):
        env.step(0)


# Which task is played.


def test_a_task_set_during_an_episode_is_played_in_the_next():
    env = TaskDependencyEnv(telling(), learns=False, task="taskclass1")
    env.reset(seed=0)
    env.set_task("taskclass4")
    assert env.node == 1
    assert env.step(0)[1] == pytest.approx(0.3)
    env.reset()
    assert env.node == 4
    assert env.step(0)[1] == pytest.approx(0.9)


def test_the_options_of_reset_name_a_task_as_well():
    env = TaskDependencyEnv(telling(), learns=False)
    env.reset(seed=0, options={"task": "taskclass2"})
    assert env.step(0)[1] == pytest.approx(0.5)


def test_set_mg_config_switches_the_task_that_is_really_played():
    # Defect 7 of the ancestor: the reward of one task was credited to another, because a config
    # took effect one reset too late.
    env = TaskDependencyEnv(telling(), learns=False)
    for node in (3, 0, 4, 4, 1):
        env.set_mg_config(Config(f"taskclass{node}"))
        env.reset()
        _, reward, _, _, info = env.step(0)
        assert reward == pytest.approx(SKILLS[node])
        assert info["task_dependency"]["task_class"] == node
        assert env.get_episode_rewards().tolist() == pytest.approx([SKILLS[node]])


def test_the_parameters_of_a_task_say_more_than_its_label():
    assert node_of(Task("a", "anything", {"node": 7})) == 7
    assert node_of(Task("a", "taskclass3")) == 3
    assert node_of(Config("taskclass12")) == 12
    assert node_of("taskclass0") == 0


@pytest.mark.parametrize(
    "task",
    [
        "taskclass",
        "taskclass-1",
        "taskclass1x",
        "class3",
        5,
        None,
        Task("a", "b", {"node": "3"}),
        Task("a", "b", {"node": True}),
    ],
)
def test_what_names_no_task_is_refused(task):
    with pytest.raises(TaskError, match=r"is not a simulated task.*simulator\.source\(\)"):
        node_of(task)


def test_a_task_that_does_not_exist_is_refused_and_changes_nothing():
    env = TaskDependencyEnv(telling(), learns=False, task="taskclass1")
    with pytest.raises(TaskError, match="task 5 does not exist; expected 0 to 4"):
        env.set_task("taskclass5")
    env.reset(seed=0)
    assert env.node == 1


# Under a curriculum.


def test_the_reward_of_a_task_is_credited_to_that_task():
    # Defect 7 again, end to end: what the curriculum is told of a task is what that task gives.
    simulator = telling()
    curriculum = Uniform(simulator.source(), seed=3)
    seen = defaultdict(list)
    curriculum.add_listener(
        lambda records: [seen[int(r["slot"])].append(float(r["episode_return"])) for r in records]
    )
    env = CurriculumEnv(TaskDependencyEnv(simulator, learns=False), curriculum)
    for _ in range(200):
        env.reset()
        env.step(0)
    assert set(seen) == {0, 1, 2, 3, 4}
    for node, returns in seen.items():
        assert returns == pytest.approx([SKILLS[node]] * len(returns))


def test_there_is_one_draw_per_episode():
    # Defect 8 of the ancestor: two draws per episode, half of them never played.
    simulator = TaskDependencySimulator(4)
    curriculum = Uniform(simulator.source())
    vector = CurriculumVectorEnv(
        SyncVectorEnv(
            [
                lambda: CurriculumEnv(
                    TaskDependencyEnv(simulator, learns=False), enable_local_tracking=False
                )
                for _ in range(3)
            ],
            autoreset_mode=AutoresetMode.NEXT_STEP,
        ),
        curriculum,
    )
    vector.reset(seed=0)
    for _ in range(39):
        vector.step(np.zeros(3, dtype=np.int64))
    # 20 plays of each env, with 19 resets between them; after the last one nobody is reset yet.
    counts = vector.tracker.host.counts
    assert (counts.started, counts.finished, counts.aborted) == (60, 60, 0)
    assert curriculum.num_observed == 60
    vector.close()


def test_option_a_one_env_that_tracks_by_itself():
    simulator = TaskDependencySimulator(5, seed=2)
    curriculum = LearningProgress(simulator.source(), seed=2)
    first = curriculum.task(curriculum.draw_one())
    curriculum_env = CurriculumEnv(TaskDependencyEnv(simulator, task=first), curriculum)
    stats = defaultdict(list)
    curriculum_env.reset(seed=2)
    for _ in range(300):
        _, _, terminal, truncated, info = curriculum_env.step(0)
        accumulate_rollout_stats([info], stats)
        if terminal or truncated:
            curriculum_env.reset()
    processed = process_training_stats(
        raw_stats=stats, losses_stats={}, experience=None, trainer_config=None
    )
    assert curriculum.num_observed == simulator.num_plays == 300
    rewards = stats["task_dependency/reward"]
    assert len(rewards) == 300
    assert processed.environment_stats["env_task_dependency/reward"] == pytest.approx(
        np.mean(rewards)
    )
    assert processed.overview["reward"] == pytest.approx(np.mean(rewards))
    assert simulator.P.mean() > 0.3


def test_option_b_the_stats_pipeline_without_envs():
    simulator = TaskDependencySimulator(5, seed=2)
    curriculum = LearningProgress(simulator.source(), seed=2)
    meter = CurriculumMeter(curriculum)
    rollout_stats = defaultdict(list)
    infos = []
    for _ in range(400):
        draw = curriculum.draw_one()
        node = node_of(curriculum.task(draw))
        shown = simulator.play(node, draw.seed)
        simulator.learn([node])
        curriculum.report(draw, shown.success, shown.reward)
        performance = float(simulator.P[node])
        infos.append({"task_dependency": {"performance": performance, "reward": shown.reward}})
    accumulate_rollout_stats(infos, rollout_stats)
    processed = process_training_stats(rollout_stats, {}, None, None)
    assert len(rollout_stats["task_dependency/reward"]) == 400
    assert "env_task_dependency/performance" in processed.environment_stats
    metrics = meter.metrics()
    assert metrics["env_curriculum_stats/total_completions"] == 400
    for name in ("sampling_gini", "pool_occupancy_gini", "pool_lp_gini"):
        assert 0.0 < metrics[f"env_curriculum_stats/{name}"] < 1.0


def vectorised(simulator, curriculum, num_envs):
    return CurriculumVectorEnv(
        SyncVectorEnv(
            [
                lambda: CurriculumEnv(TaskDependencyEnv(simulator), enable_local_tracking=False)
                for _ in range(num_envs)
            ],
            autoreset_mode=AutoresetMode.SAME_STEP,
        ),
        curriculum,
    )


@pytest.mark.parametrize("num_envs", [1, 8])
def test_option_c_envs_in_step(num_envs):
    simulator = TaskDependencySimulator(5, seed=2)
    curriculum = LearningProgress(simulator.source(), seed=2)
    envs = vectorised(simulator, curriculum, num_envs)
    stats, played = defaultdict(list), np.zeros(5, dtype=np.int64)
    envs.reset(seed=1)
    for _ in range(400 // num_envs):
        _, _, _, _, infos = envs.step(np.zeros(num_envs, dtype=np.int64))
        accumulate_rollout_stats(infos, stats)
        for node in infos["final_info"]["task_dependency"]["task_class"]:
            played[node] += 1
    assert simulator.num_plays == curriculum.num_observed == 400
    assert len(stats["task_dependency/reward"]) == 400
    assert simulator.get_summary()["sample_counts"] == played.tolist()
    envs.close()


def test_eight_curriculum_envs_by_hand_are_told_to_share_a_channel():
    # The seed made eight envs around one curriculum, each with results of its own.
    simulator = TaskDependencySimulator(5)
    curriculum = Uniform(simulator.source())
    first = CurriculumEnv(TaskDependencyEnv(simulator), curriculum)
    with pytest.raises(ChannelError, match="already carried by a channel"):
        CurriculumEnv(TaskDependencyEnv(simulator), curriculum)
    first.close()


# In other processes.


def test_an_env_elsewhere_cannot_teach():
    segment = Segment.create(4)
    view = SkillView(segment.ticket, np.zeros(4, dtype=np.int64))
    with pytest.raises(ConfigError, match=re.escape("Pass learns=False and let the host learn")):
        TaskDependencyEnv(view)
    segment.close()


def _watch(view):
    return CurriculumEnv(
        TaskDependencyEnv(view, learns=False), enable_local_tracking=False, seed_episodes=True
    )


@pytest.mark.processes
@pytest.mark.timeout(60)
def test_envs_in_workers_see_what_the_host_has_learned():
    simulator = telling()
    curriculum = Uniform(simulator.source())
    segment = Segment.create(simulator.state.shared_words)
    simulator.move_to(segment.words)
    view = SkillView(segment.ticket, simulator.state)
    vector = CurriculumVectorEnv(
        AsyncVectorEnv([lambda: _watch(view)] * 2, autoreset_mode=AutoresetMode.NEXT_STEP),
        curriculum,
    )
    actions = np.zeros(2, dtype=np.int64)
    vector.reset()
    for _ in range(20):
        expected = simulator.P
        _, rewards, _, _, infos = vector.step(actions)
        nodes = infos["task_dependency"]["task_class"]
        assert rewards.tolist() == pytest.approx(expected[nodes].tolist())
        simulator.learn(nodes)
        vector.step(actions)
    assert simulator.num_plays == 40
    vector.close()
    simulator.move_to(np.zeros(simulator.state.shared_words, dtype=np.int64))
    segment.close()
