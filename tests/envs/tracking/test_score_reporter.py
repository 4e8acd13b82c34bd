"""Advantages of steps become scores of the episodes that were played, and of no other."""

from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from stepladder.curricula import LevelReplay, LevelReplayConfig, Phase, Phased, Uniform
from stepladder.envs import CurriculumEnv, CurriculumVectorEnv, make_vec
from stepladder.envs.tracking.score_reporter import ScoreReporter
from stepladder.errors import ConfigError, RecordError, SnapshotError
from stepladder.games.ledge.source import LedgeLevels
from stepladder.saving.snapshot import Snapshot
from stepladder.stats.level_scores import STEP_SCORES
from stepladder.tasks import ListSource, NumberedSource, Task
from testing_env import PracticeEnv

NEXT_STEP, SAME_STEP = AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP
THREE_STEPS = [Task("three", params={"length": 3})]
MIXED = [Task(f"t{n}", params={"length": n}) for n in (1, 2, 3, 5)]


class Spied(LevelReplay):
    """Writes down which scores it was given."""

    def report_scores(self, slots: Any, generations: Any, scores: Any) -> None:
        vars(self).setdefault("told", []).extend(
            zip(slots.tolist(), generations.tolist(), scores.tolist(), strict=True)
        )
        super().report_scores(slots, generations, scores)


def make(tasks: Any, num_envs: int = 2, mode: Any = NEXT_STEP, **settings: Any) -> Any:
    curriculum = Spied(tasks, **{"scored_by": "value_loss", **settings})
    envs = SyncVectorEnv([practice] * num_envs, autoreset_mode=mode)
    return CurriculumVectorEnv(envs, curriculum)


def practice() -> Any:
    return CurriculumEnv(PracticeEnv(), enable_local_tracking=False)


@pytest.fixture
def opened() -> Iterator[list[Any]]:
    envs: list[Any] = []
    yield envs
    for one in envs:
        one.close()


def play(envs: Any, num_steps: int) -> list[Any]:
    return [envs.step(np.zeros(envs.num_envs, dtype=np.int64)) for _ in range(num_steps)]


def told(envs: Any) -> list[tuple[int, int, float]]:
    return vars(envs.curriculum).get("told", [])


# Worked out by hand.


def test_an_episode_that_spans_two_rollouts_is_scored_once_with_all_its_steps(opened: Any):
    envs = make(THREE_STEPS)
    opened.append(envs)
    reporter = ScoreReporter(envs)
    envs.reset(seed=0)
    play(envs, 2)
    assert reporter.report([[1.0, -2.0], [3.0, 0.0]]) == 0
    play(envs, 2)  # Both end; then both are only reset, whatever is in that row.
    assert reporter.report([[-2.0, 1.0], [np.nan, 100.0]]) == 2
    # (1 + 3 + 2) / 3 and (2 + 0 + 1) / 3.
    assert told(envs) == [(0, 0, 2.0), (0, 0, 1.0)]
    play(envs, 3)
    assert reporter.report([[1.0, 0.0], [1.0, 0.0], [4.0, 6.0]]) == 2
    assert told(envs)[2:] == [(0, 0, 2.0), (0, 0, 2.0)]
    assert (reporter.num_scored, reporter.num_aborted) == (4, 0)


def test_positive_value_loss_leaves_negative_advantages_out(opened: Any):
    envs = make(THREE_STEPS, scored_by="positive_value_loss")
    opened.append(envs)
    reporter = ScoreReporter(envs)
    envs.reset(seed=0)
    play(envs, 3)
    reporter.report([[3.0, -2.0], [3.0, 0.0], [-2.0, 1.5]])
    assert told(envs) == [(0, 0, 2.0), (0, 0, 0.5)]


def test_with_same_step_autoreset_every_row_is_played(opened: Any):
    envs = make(THREE_STEPS, mode=SAME_STEP)
    opened.append(envs)
    reporter = ScoreReporter(envs)
    envs.reset(seed=0)
    play(envs, 4)
    # The fourth row is the first of the next episode.
    assert reporter.report([[1.0, 0.0], [1.0, 0.0], [1.0, 3.0], [9.0, -6.0]]) == 2
    assert told(envs) == [(0, 0, 1.0), (0, 0, 1.0)]
    play(envs, 2)
    assert reporter.report([[0.0, 0.0], [0.0, 0.0]]) == 2
    assert told(envs)[2:] == [(0, 0, 3.0), (0, 0, 2.0)]


# By another way.


@pytest.mark.parametrize("mode", [NEXT_STEP, SAME_STEP])
@pytest.mark.parametrize("score", STEP_SCORES)
@pytest.mark.parametrize("rollout", [1, 3, 7])
def test_scores_equal_those_of_whole_episodes(opened: Any, mode: Any, score: str, rollout: int):
    envs = make(MIXED, 3, mode, scored_by=score)
    opened.append(envs)
    reporter = ScoreReporter(envs)
    rng = np.random.default_rng(1)
    records: list[Any] = []
    envs.curriculum.add_listener(lambda batch: records.extend(batch.copy()))
    envs.reset(seed=0)
    expected: list[tuple[int, int, float]] = []
    running: list[list[float]] = [[], [], []]
    resets = [False] * 3
    for _ in range(12):
        advantages = rng.normal(size=(rollout, 3))
        for row in advantages:
            records.clear()
            ((_, _, terminated, truncated, _),) = play(envs, 1)
            by_env = {int(record["env_index"]): record for record in records}
            for env_index, ended in enumerate(terminated | truncated):
                if resets[env_index]:
                    resets[env_index] = False
                    continue
                running[env_index].append(row[env_index])
                if ended:
                    record, steps = by_env[env_index], running[env_index]
                    assert record["length"] == len(steps)
                    place = int(record["slot"]), int(record["generation"])
                    expected.append((*place, STEP_SCORES[score](steps)))
                    running[env_index] = []
                    resets[env_index] = mode is NEXT_STEP
        reporter.report(advantages)
    assert len(expected) > 5
    assert [entry[:2] for entry in told(envs)] == [entry[:2] for entry in expected]
    np.testing.assert_allclose(
        [entry[2] for entry in told(envs)], [entry[2] for entry in expected], rtol=1e-12
    )


# Credit.


def test_a_step_of_several_agents_counts_with_the_mean_over_those_that_took_part(opened: Any):
    by_agent, by_mean = make(THREE_STEPS), make(THREE_STEPS)
    opened += [by_agent, by_mean]
    both = [ScoreReporter(by_agent), ScoreReporter(by_mean)]
    for envs in (by_agent, by_mean):
        envs.reset(seed=0)
        play(envs, 3)
    advantages = np.array([[[1.0, -3.0], [2.0, np.nan]]] * 3)
    took_part = np.array([[[True, True], [True, False]]] * 3)
    assert both[0].report(advantages, took_part) == 2
    both[1].report([[2.0, 2.0]] * 3)
    assert [score for *_, score in told(by_agent)] == [2.0, 2.0] == [x for *_, x in told(by_mean)]
    with pytest.raises(RecordError, match=r"took_part has shape \[1\]; expected \[3, 2, 2\]"):
        both[0].report(advantages, [True])


def test_a_score_of_a_task_that_was_replaced_reaches_no_task(opened: Any):
    source = ListSource([Task(f"t{n}", params={"length": 2}) for n in range(9)])
    curriculum = LevelReplay(source, scored_by="value_loss", capacity=2)
    envs = make_vec(PracticeEnv, 2, curriculum=curriculum, num_workers=0)
    opened.append(envs)
    reporter = ScoreReporter(envs)
    envs.reset(seed=0)
    play(envs, 2)
    for slot in (0, 1):
        curriculum.replace(slot)
    assert reporter.report(np.ones((2, 2))) == 2
    assert curriculum.num_orphaned_scores == 2
    assert curriculum.num_seen == 0


def test_an_episode_that_a_reset_broke_off_gets_no_score_and_leaves_none_behind(opened: Any):
    envs = make(THREE_STEPS)
    opened.append(envs)
    reporter = ScoreReporter(envs)
    envs.reset(seed=0)
    play(envs, 2)
    envs.reset(options={"reset_mask": np.array([True, False])})
    play(envs, 2)
    # The first env: 1, 1, then a new one with 4, 4. The second one ends with the third row.
    assert reporter.report([[1.0, 3.0], [1.0, 3.0], [4.0, 3.0], [4.0, 9.0]]) == 1
    assert told(envs) == [(0, 0, 3.0)]
    play(envs, 1)
    assert reporter.report([[4.0, 1.0]]) == 1
    assert told(envs)[1:] == [(0, 0, 4.0)]


def test_an_end_without_a_record_gets_no_score(opened: Any):
    def limited() -> Any:
        inner = CurriculumEnv(PracticeEnv(), enable_local_tracking=False)
        return gym.wrappers.TimeLimit(inner, 2)

    curriculum = Spied(THREE_STEPS, scored_by="value_loss")
    envs = CurriculumVectorEnv(SyncVectorEnv([limited, limited]), curriculum)
    opened.append(envs)
    reporter = ScoreReporter(envs)
    envs.reset(seed=0)
    play(envs, 3)
    assert reporter.report(np.ones((3, 2))) == 0
    assert (reporter.num_scored, reporter.num_aborted) == (0, 2)
    assert curriculum.num_seen == 0


def test_steps_that_were_dropped_count_for_no_episode(opened: Any):
    envs = make(THREE_STEPS, mode=SAME_STEP)
    opened.append(envs)
    reporter = ScoreReporter(envs)
    envs.reset(seed=0)
    play(envs, 2)
    reporter.report(np.full((2, 2), 5.0))
    play(envs, 2)
    reporter.drop_steps()
    assert reporter.num_steps == 0
    play(envs, 2)
    # The last two steps of the second episode, whose first one was dropped.
    assert reporter.report([[1.0, 2.0], [2.0, 4.0]]) == 2
    assert told(envs) == [(0, 0, 1.5), (0, 0, 3.0)]


def test_the_phase_in_force_gets_the_scores(opened: Any):
    curriculum = Phased(
        NumberedSource(4),
        phases=(
            Phase(name="look", episodes=10**6),
            Phase(name="replay", curriculum=LevelReplayConfig(scored_by="value_loss")),
        ),
    )
    envs = make_vec(OneStep, 2, curriculum=curriculum, num_workers=0)
    opened.append(envs)
    reporter = ScoreReporter(envs)
    envs.reset(seed=0)
    play(envs, 2)
    assert reporter.report(np.ones((2, 2))) == 2
    inner: Any = curriculum.inner[1]
    assert inner.num_seen == 0


class OneStep(gym.Env[Any, Any]):
    """Ends with its first step."""

    observation_space = gym.spaces.Box(-1.0, 1.0, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def set_task(self, task: Task) -> None:
        pass

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> Any:
        return np.zeros(1, np.float32), 0.0, True, False, {"is_success": True}


# Refused.


def test_advantages_that_do_not_fit_are_refused_and_change_nothing(opened: Any):
    envs = make(THREE_STEPS)
    opened.append(envs)
    reporter = ScoreReporter(envs)
    envs.reset(seed=0)
    play(envs, 3)
    with pytest.raises(RecordError, match=r"shape \[2, 2\]; expected \[3, 2\].*drop_steps"):
        reporter.report(np.ones((2, 2)))
    wrong = np.ones((3, 2))
    wrong[1, 1] = np.inf
    with pytest.raises(RecordError, match="step 1 of env 1 is inf; expected a finite number"):
        reporter.report(wrong)
    assert reporter.report(np.ones((3, 2))) == 2


def test_a_curriculum_that_wants_no_scores_has_no_reporter_and_no_cost(opened: Any):
    envs = make_vec(PracticeEnv, 1, curriculum=Uniform(THREE_STEPS), num_workers=0)
    opened.append(envs)
    with pytest.raises(ConfigError, match="Uniform wants no scores from a trainer"):
        ScoreReporter(envs)
    assert envs.tracker.reporter is None
    assert "scores" not in envs.snapshot().state


def test_a_second_reporter_and_envs_without_a_curriculum_are_refused(opened: Any):
    envs = make(THREE_STEPS)
    opened.append(envs)
    ScoreReporter(envs)
    with pytest.raises(ConfigError, match="has a ScoreReporter already"):
        ScoreReporter(envs)
    with pytest.raises(ConfigError, match="need a vector env with a curriculum; got a SyncVec"):
        ScoreReporter(envs.env)


# Saved.


def test_a_reporter_goes_on_where_games_go_on(opened: Any):
    def start() -> tuple[Any, Any]:
        levels = LedgeLevels(("simplest",), per_stage=4)
        envs = make_vec(
            "stepladder/Ledge-v0",
            3,
            curriculum=LevelReplay(levels, scored_by="value_loss", seed=3),
            env_kwargs={"time_limit": 6},
        )
        opened.append(envs)
        return envs, ScoreReporter(envs)

    def rollout(envs: Any, reporter: Any, rng: Any, first: int, second: int) -> Any:
        play(envs, first)
        saved = envs.snapshot(in_flight=True)
        play(envs, second)
        advantages = rng.normal(size=(first + second, 3))
        reporter.report(advantages)
        return saved, advantages

    envs, reporter = start()
    envs.reset(seed=0)
    rng = np.random.default_rng(0)
    for _ in range(3):
        rollout(envs, reporter, rng, 2, 2)
    saved, advantages = rollout(envs, reporter, rng, 3, 2)
    again, resumed = start()
    assert again.restore(saved, in_flight=True)
    assert resumed.num_steps == 3
    play(again, 2)
    resumed.report(advantages)
    one, two = envs.snapshot(in_flight=True), again.snapshot(in_flight=True)
    assert one.state == two.state
    assert {name: array.tobytes() for name, array in one.arrays.items()} == {
        name: array.tobytes() for name, array in two.arrays.items()
    }
    assert resumed.num_scored > 0


def test_where_episodes_are_played_again_nothing_is_carried_over(opened: Any):
    envs = make(THREE_STEPS)
    opened.append(envs)
    reporter = ScoreReporter(envs)
    envs.reset(seed=0)
    play(envs, 2)
    reporter.report(np.full((2, 2), 7.0))
    play(envs, 1)
    saved = envs.snapshot()
    assert not envs.restore(saved)
    assert reporter.num_steps == 0
    envs.reset()
    play(envs, 3)
    assert reporter.report(np.ones((3, 2))) == 2
    assert told(envs) == [(0, 0, 1.0), (0, 0, 1.0)]


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("slots", lambda array: array + 9, "slot.* expected an integer from -3 to 0"),
        ("cuts", lambda array: array[:1], r"have \[2, 2, 1\] rows"),
        ("parts", None, "is missing"),
    ],
)
def test_damage_is_refused_and_changes_nothing(opened: Any, name: str, change: Any, words: str):
    envs = make(THREE_STEPS)
    opened.append(envs)
    reporter = ScoreReporter(envs)
    envs.reset(seed=0)
    play(envs, 2)
    saved = envs.snapshot()
    arrays = dict(saved.arrays)
    taken = arrays.pop(f"scores/{name}")
    if change is not None:
        arrays[f"scores/{name}"] = change(taken)
    with pytest.raises(SnapshotError, match=words):
        envs.restore(Snapshot(saved.state, arrays))
    assert reporter.num_steps == 2
