"""A round, play by play: what the plan and the learner say it must be."""

import numpy as np

from stepladder.curricula import Uniform
from stepladder.plans.kernels import draw
from stepladder.plans.record import RECORD_DTYPE
from stepladder.simulator import TaskDependencySimulator
from stepladder.simulator.learner_state import SEED_MASK
from stepladder.simulator.rounds import Dealt, SlotSums, deal, deal_round, finish_round


def test_a_round_is_dealt_from_the_plan_and_with_the_skills_of_its_beginning():
    simulator = TaskDependencySimulator(4, seed=1, start={0: 0.5, 1: 0.5, 2: 0.5, 3: 0.5})
    curriculum = Uniform(simulator.source(), seed=1)
    block = curriculum.plan.block
    records = np.zeros(6, dtype=RECORD_DTYPE)
    nodes, levels = np.zeros(6, dtype=np.int64), np.zeros(6)
    learner = simulator.state
    for episode in range(3):
        assert deal(block, learner, records, nodes, levels) == 6
        for env in range(6):
            slot, _, task_id, _, seed, _ = draw(block, env, episode, np.zeros(0))
            shown = simulator.play(task_id, seed & SEED_MASK)
            record = records[env]
            assert (record["slot"], nodes[env], levels[env]) == (slot, task_id, 0.5)
            assert (record["success"], record["episode_return"]) == (shown.success, shown.reward)
            assert (record["env_index"], record["episode_index"]) == (env, episode)
            assert record["length"] == 1
    assert simulator.num_plays == 0


def test_a_round_without_records_is_the_same_round():
    simulator, other = (TaskDependencySimulator(4, seed=1, start={0: 0.5}) for _ in range(2))
    block = Uniform(simulator.source(), seed=1).plan.block
    records = np.zeros(6, dtype=RECORD_DTYPE)
    nodes, levels = np.zeros(6, dtype=np.int64), np.zeros(6)
    dealt, sums, expected = Dealt.zeros(6), SlotSums.zeros(4), np.zeros((4, 6))
    values = block.view(np.float64)
    for _ in range(50):
        learner = simulator.state
        assert deal(block, learner, records, nodes, levels) == 6
        assert deal_round(block, values, other.state, dealt)
        for name in ("slot", "generation", "success", "episode_return"):
            assert dealt[name].tolist() == records[name].tolist()
        assert dealt["node"].tolist() == nodes.tolist()
        assert dealt["level"].tolist() == levels.tolist()
        for slot, success, reward, level in zip(
            nodes, records["success"], records["episode_return"], levels, strict=True
        ):
            expected[slot] += (1.0, success, reward, level, 1.0, success)
        simulator.learn(nodes)
        finish_round(other.state, dealt, sums)
        assert other.P.tolist() == simulator.P.tolist()
    found = np.array(sums.tolist())
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert sums["num_plays"].sum() == 300


def test_where_nothing_can_be_drawn_no_round_is_played():
    simulator = TaskDependencySimulator(2)
    curriculum = Uniform(simulator.source())
    for slot in (0, 1):
        curriculum.quarantine(slot, 0, "broken")
    block, learner = curriculum.plan.block, simulator.state
    records, nodes = np.zeros(1, dtype=RECORD_DTYPE), np.zeros(1, dtype=np.int64)
    assert deal(block, learner, records, nodes, np.zeros(1)) < 0
    assert not deal_round(block, block.view(np.float64), learner, Dealt.zeros(1))
    assert simulator.clock["num_rounds"] == 0
