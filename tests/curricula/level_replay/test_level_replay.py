"""LevelReplay: scores, ranks, ages and schedules by hand; what a trainer gives and asks."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curricula.fake_learner import differences, live, record_for
from curricula.fake_learner import play_results as play
from stepladder.curricula import (
    LevelReplay,
    LevelReplayConfig,
    LevelReplayExplanation,
    Phase,
    Phased,
    Snapshot,
)
from stepladder.errors import ConfigError, RecordError, SnapshotError
from stepladder.tasks import ListSource, NumberedSource, Task, UnionSource


def make(num_tasks: int = 4, **settings: Any) -> LevelReplay:
    """Make a curriculum whose weights are 1/rank, all ranks fresh, with ages left out."""
    bare: dict[str, Any] = {"temperature": 1.0, "staleness": 0.0, "reranked_per_episode": num_tasks}
    return LevelReplay(NumberedSource(num_tasks), **{**bare, **settings})


def trained(num_tasks: int = 4, **settings: Any) -> LevelReplay:
    """Make the same, with scores from a trainer."""
    return make(num_tasks, **{"scored_by": "trainer", **settings})


def score(curriculum: LevelReplay, *scores: float, first: int = 0) -> None:
    """Report one score for each slot from `first` on."""
    slots = np.arange(first, first + len(scores))
    curriculum.report_scores(slots, curriculum.pool.generations[slots], scores)


# Scores.


def test_deviations_of_four_episodes_by_hand():
    curriculum = make()
    # The mean of 0.5 and the results so far: 0.5, 1.5/2, 1.5/3, 1.5/4. Each result lies 0.5,
    # 0.75, 0.5, 0.625 from the one before it; the score is the mean of these.
    expected = [0.5, 1.25 / 2, 1.75 / 3, 2.375 / 4]
    for count, result in enumerate("wffw"):
        play(curriculum, 1, result)
        assert curriculum.scores().tolist() == pytest.approx([0.0, expected[count], 0.0, 0.0])
        assert curriculum.plays().tolist() == [0, count + 1, 0, 0]


def test_the_newest_result_never_weighs_less_than_its_setting():
    curriculum = make(score_weight=0.5)
    play(curriculum, 0, "wff")
    # Means 0.5, 0.75, 0.375; deviations 0.5, 0.75, 0.375; scores 0.5, 0.625, 0.5.
    assert curriculum.scores()[0] == pytest.approx(0.5)
    play(curriculum, 0, "w")
    # From a mean of 0.1875: 0.8125.
    assert curriculum.scores()[0] == pytest.approx((0.5 + 0.8125) / 2)


def test_tasks_always_and_never_solved_lose_their_score():
    curriculum = make()
    play(curriculum, 0, "w" * 60)
    play(curriculum, 1, "f" * 60)
    play(curriculum, 2, "wf" * 30)
    scores = curriculum.scores()
    assert scores[0] == pytest.approx(scores[1])
    assert scores[0] < 0.02
    assert scores[2] > 0.4


def test_the_best_return_is_kept_for_every_task():
    curriculum = make()
    for value in (-3.0, -1.0, -2.0):
        curriculum.observe(record_for(curriculum, 2, 0.0, episode_return=value))
    assert curriculum.best_returns().tolist() == pytest.approx(
        [np.nan] * 2 + [-1.0, np.nan], nan_ok=True
    )


# Ranks.


def test_replays_go_by_rank():
    curriculum = trained()
    score(curriculum, 0.3, 7.0, 0.1, 0.2)
    weights = np.array([1 / 2, 1, 1 / 4, 1 / 3])
    assert curriculum.probs().tolist() == pytest.approx((weights / weights.sum()).tolist())


def test_a_low_temperature_draws_the_top_alone():
    probs = {}
    for temperature in (0.1, 0.5):
        curriculum = trained(3, temperature=temperature)
        score(curriculum, 0.3, 0.2, 0.1)
        probs[temperature] = curriculum.probs()
    assert probs[0.5].tolist() == pytest.approx((np.array([36, 9, 4]) / 49).tolist())
    # 1, 2^-10, 3^-10.
    assert probs[0.1].tolist() == pytest.approx([0.999007, 0.000976, 0.000017], abs=1e-6)


def test_greedy_is_the_top_and_ties_share():
    curriculum = trained(3, transform="greedy")
    score(curriculum, 0.3, 0.2, 0.1)
    assert set(curriculum.draw_batch(10_000)["slot"].tolist()) == {0}
    score(curriculum, 0.2)
    assert curriculum.probs().tolist() == pytest.approx([0.5, 0.5, 0.0], abs=1e-12)


def test_ranks_follow_when_scores_change():
    curriculum = trained()
    score(curriculum, 4.0, 3.0, 2.0, 1.0)
    score(curriculum, 0.5)
    weights = np.array([1 / 4, 1, 1 / 2, 1 / 3])
    assert curriculum.probs().tolist() == pytest.approx((weights / weights.sum()).tolist())
    assert [curriculum.explain(slot).numbers["rank"] for slot in range(4)] == [4, 1, 2, 3]


def test_without_a_second_look_a_task_keeps_the_rank_it_came_with():
    curriculum = trained(reranked_per_episode=0)
    score(curriculum, 1.0, 2.0, 3.0, 4.0)
    assert curriculum.probs().tolist() == pytest.approx([0.25] * 4)
    score(curriculum, 1.0)
    weights = np.array([1 / 4, 1, 1, 1])
    assert curriculum.probs().tolist() == pytest.approx((weights / weights.sum()).tolist())


def test_the_others_are_ranked_anew_in_turn():
    curriculum = trained(reranked_per_episode=1)
    score(curriculum, 1.0, 2.0, 3.0, 4.0)
    for _ in range(4):
        score(curriculum, 4.0, first=3)
    weights = np.array([1 / 4, 1 / 3, 1 / 2, 1])
    assert curriculum.probs().tolist() == pytest.approx((weights / weights.sum()).tolist())


def test_many_changing_scores_stay_close_to_exact_ranks():
    rng, num_tasks = np.random.default_rng(3), 2000
    curriculum = trained(num_tasks, reranked_per_episode=4, max_share=1.0)
    score(curriculum, *rng.exponential(size=num_tasks))
    for _ in range(num_tasks):
        slot = int(rng.integers(num_tasks))
        score(curriculum, float(rng.exponential()), first=slot)
    ranks = np.empty(num_tasks)
    ranks[np.argsort(-curriculum.scores())] = np.arange(1, num_tasks + 1)
    exact = 1.0 / ranks
    off = np.abs(curriculum.probs() - exact / exact.sum()).sum() / 2
    assert off < 0.03


def test_scores_may_weigh_by_themselves_or_by_their_exponential():
    proportional = trained(3, transform="proportional", temperature=0.5)
    score(proportional, 1.0, 2.0, 0.0)
    assert proportional.probs().tolist() == pytest.approx([0.2, 0.8, 0.0])
    softmax = trained(3, transform="softmax", temperature=2.0)
    score(softmax, 1.0, 2.0, 0.0)
    weights = np.exp([0.5, 1.0, 0.0])
    assert softmax.probs().tolist() == pytest.approx((weights / weights.sum()).tolist())


@pytest.mark.parametrize("transform", ["rank", "greedy", "proportional", "softmax"])
def test_enormous_scores_do_no_harm(transform: str):
    curriculum = trained(3, transform=transform, temperature=0.02)
    score(curriculum, 1e300, 1e300, 1.0)
    assert curriculum.probs().tolist() == pytest.approx([0.5, 0.5, 0.0], abs=1e-9)


def test_the_sources_weights_scale_everything():
    union = UnionSource([(ListSource([Task("x")]), 1.0), (ListSource([Task("y")]), 3.0)])
    for staleness in (0.0, 1.0):
        curriculum = LevelReplay(union, scored_by="trainer", staleness=staleness)
        assert curriculum.probs().tolist() == pytest.approx([0.25, 0.75])
        score(curriculum, 1.0, 1.0)
        assert curriculum.probs().tolist() == pytest.approx([0.25, 0.75])


# Ages.


def test_the_weight_of_age_doubles_with_every_round():
    curriculum = make(2, staleness=1.0)
    play(curriculum, 0, "w")
    play(curriculum, 1, "www")
    # Three plays are one and a half rounds of two.
    weights = np.array([2**1.5, 1.0])
    assert curriculum.probs().tolist() == pytest.approx((weights / weights.sum()).tolist())
    assert [curriculum.explain(slot).numbers["age"] for slot in (0, 1)] == [3, 0]
    play(curriculum, 0, "w")
    weights = np.array([1.0, 2**0.5])
    assert curriculum.probs().tolist() == pytest.approx((weights / weights.sum()).tolist())


def test_age_has_its_share_of_the_replays():
    curriculum = make(2, staleness=0.4)
    play(curriculum, 0, "wf")
    play(curriculum, 1, "ww")
    by_age = 2.0 / 3.0
    assert curriculum.probs()[0] == pytest.approx(0.6 * (1 / 1.5) + 0.4 * by_age)


def test_after_thousands_of_rounds_age_still_counts():
    curriculum = make(3, staleness=1.0)
    play(curriculum, 2, "w")
    for _ in range(3000):
        play(curriculum, 0, "w")
        play(curriculum, 1, "w")
    # 2000 doublings since the start: more than a float can hold.
    assert curriculum.probs().tolist() == pytest.approx([0.0, 0.0, 1.0], abs=1e-12)
    play(curriculum, 2, "w")
    weights = 2.0 ** (np.array([2.0, 1.0, 0.0]) / 3)
    assert curriculum.probs().tolist() == pytest.approx((weights / weights.sum()).tolist())
    play(curriculum, 1, "w" * 5000)
    probs = curriculum.probs()
    assert np.all(np.isfinite(probs))
    assert probs[1] == pytest.approx(0.0, abs=1e-12)


def test_results_of_replaced_tasks_make_nobody_older():
    curriculum = LevelReplay(NumberedSource(9), capacity=3, staleness=1.0)
    play(curriculum, 0, "w")
    late = record_for(curriculum, 2, 1.0)
    curriculum.replace(2)
    curriculum.observe([late] * 30)
    assert curriculum.explain(0).numbers["age"] == 0
    assert curriculum.num_orphaned == 30
    play(curriculum, 1, "w")
    assert [curriculum.explain(slot).numbers["age"] for slot in (0, 1)] == [1, 0]


def test_every_task_is_replayed_again_thanks_to_its_age():
    curriculum = LevelReplay(NumberedSource(50), seed=2)
    for _ in range(4000):
        draw = curriculum.draw_one()
        curriculum.report(draw, float(draw.slot == 0 and draw.episode_index % 2))
    # Ten percent of the draws go round fifty tasks: eight rounds, less the time to see them all.
    assert curriculum.plays()[1:].min() >= 4
    assert curriculum.plays()[0] > 1500


# Unseen tasks.


def test_replays_become_as_likely_as_tasks_are_seen():
    curriculum = make()
    assert (curriculum.replay_prob, curriculum.num_seen) == (0.0, 0)
    assert curriculum.probs().tolist() == pytest.approx([0.25] * 4)
    play(curriculum, 0, "w")
    assert curriculum.replay_prob == pytest.approx(0.25)
    play(curriculum, 0, "wwf")
    play(curriculum, 1, "wwwwwwww")
    # Half of the draws replay, two thirds of those slot 0; the rest is for the two others.
    assert curriculum.probs().tolist() == pytest.approx([1 / 3, 1 / 6, 1 / 4, 1 / 4])
    play(curriculum, 2, "w")
    play(curriculum, 3, "w")
    assert (curriculum.replay_prob, curriculum.num_seen) == (1.0, 4)


def test_a_fixed_schedule_replays_as_told_once_enough_is_seen():
    curriculum = make(schedule="fixed", replay_prob=0.8, min_seen=0.5)
    play(curriculum, 0, "w")
    # One of four is not enough yet: it is not drawn at all.
    assert curriculum.probs().tolist() == pytest.approx([0.0] + [1 / 3] * 3)
    play(curriculum, 1, "w")
    assert curriculum.replay_prob == pytest.approx(0.8)
    assert curriculum.probs().tolist() == pytest.approx([0.4, 0.4, 0.1, 0.1])
    play(curriculum, 2, "w")
    play(curriculum, 3, "w")
    assert curriculum.replay_prob == 1.0


def test_a_replaced_task_is_unseen_again():
    curriculum = LevelReplay(NumberedSource(9), capacity=3, temperature=1.0)
    for slot in range(3):
        play(curriculum, slot, "wf")
    curriculum.replace(1)
    assert (curriculum.num_seen, curriculum.replay_prob) == (2, pytest.approx(2 / 3))
    assert curriculum.probs()[1] == pytest.approx(1 / 3)
    assert curriculum.scores()[1] == 0.0
    assert np.isnan(curriculum.best_returns()[1])
    assert curriculum.explain(1).numbers == {"plays": 0.0}
    # Two are left in the ranks; a third result, nearer to the mean, makes this the lower one.
    play(curriculum, 0, "w")
    assert curriculum.explain(0).reason == "its score ranks 2 of 2"


def test_a_quarantined_task_leaves_the_ranks_to_others():
    curriculum = trained(3)
    score(curriculum, 3.0, 2.0, 1.0)
    curriculum.quarantine(0, 0, "no such map")
    assert (curriculum.num_seen, curriculum.replay_prob) == (2, 1.0)
    score(curriculum, 9.0)
    play(curriculum, 0, "ww")
    score(curriculum, 1.0, first=2)
    assert curriculum.probs().tolist() == pytest.approx([0.0, 2 / 3, 1 / 3])
    assert curriculum.num_seen == 2


def test_late_results_do_not_bring_a_quarantined_task_back_among_the_ranks():
    curriculum = make(3)
    for slot in range(3):
        play(curriculum, slot, "w")
    curriculum.quarantine(0, 0, "no such map")
    play(curriculum, 0, "wfwf")
    assert curriculum.num_seen == 2
    play(curriculum, 1, "f")
    assert curriculum.explain(1).numbers["rank"] == 1
    assert curriculum.probs().tolist() == pytest.approx([0.0, 2 / 3, 1 / 3])


def test_quarantine_of_an_unseen_task_makes_replays_likelier():
    curriculum = make()
    play(curriculum, 0, "w")
    play(curriculum, 1, "w")
    curriculum.quarantine(2, 0, "no such map")
    assert curriculum.replay_prob == pytest.approx(2 / 3)
    assert curriculum.probs().tolist() == pytest.approx([1 / 3, 1 / 3, 0.0, 1 / 3])


# Which draws are replays.


def test_a_draw_is_a_replay_if_its_task_had_a_score_then():
    curriculum = make(1)
    early = curriculum.draw_one()
    assert not curriculum.is_replay(early)
    curriculum.report(early, 1.0)
    late = curriculum.draw_one()
    assert curriculum.is_replay(late)
    assert not curriculum.is_replay(early)
    answers = curriculum.are_replays(
        [early.slot, late.slot], [0, 0], [early.plan_version, late.plan_version]
    )
    assert answers.tolist() == [False, True]


def test_with_a_trainer_playing_alone_is_not_seeing():
    curriculum = trained(1)
    curriculum.report(curriculum.draw_one(), 1.0)
    assert curriculum.plays().tolist() == [1]
    draw = curriculum.draw_one()
    assert (curriculum.num_seen, curriculum.is_replay(draw)) == (0, False)
    score(curriculum, 1.0)
    assert curriculum.is_replay(curriculum.draw_one())
    assert not curriculum.is_replay(draw)


def test_the_answer_outlives_the_task_by_one():
    curriculum = LevelReplay(NumberedSource(9), capacity=1)
    exploring = curriculum.draw_one()
    curriculum.report(exploring, 1.0)
    replaying = curriculum.draw_one()
    curriculum.replace(0)
    assert not curriculum.is_replay(exploring)
    assert curriculum.is_replay(replaying)
    assert not curriculum.is_replay(curriculum.draw_one())
    curriculum.replace(0)
    assert not curriculum.is_replay(replaying)


def test_the_answer_survives_saving():
    curriculum, resumed = make(), make()
    life = live(curriculum, 30)
    resumed.restore(curriculum.snapshot())
    answers = [curriculum.is_replay(draw) for draw in life.draws]
    assert [resumed.is_replay(draw) for draw in life.draws] == answers
    assert answers.count(False) == curriculum.num_seen == 4


def test_questions_about_slots_that_do_not_exist_are_refused():
    curriculum = make()
    with pytest.raises(RecordError, match="slot 4 does not exist"):
        curriculum.are_replays([0, 4], [0, 0], [1, 1])
    with pytest.raises(RecordError, match="integers, as many of each"):
        curriculum.are_replays([0, 1], [0], [1, 1])


# What a trainer reports.


def test_a_trainers_score_replaces_the_one_before():
    curriculum = trained()
    score(curriculum, 1.0, 2.0)
    score(curriculum, 0.25)
    assert curriculum.scores().tolist() == [0.25, 2.0, 0.0, 0.0]
    smoothed = trained(score_weight=0.5)
    score(smoothed, 1.0)
    score(smoothed, 0.0)
    score(smoothed, 0.0)
    assert smoothed.scores()[0] == pytest.approx(0.25)


def test_one_score_can_be_reported_by_itself_and_below_zero_is_zero():
    curriculum = trained()
    curriculum.report_scores(2, 0, -3.0)
    assert curriculum.num_seen == 1
    assert curriculum.scores().tolist() == [0.0] * 4
    assert curriculum.explain(2).numbers["score"] == 0.0


def test_a_score_of_a_replaced_task_is_credited_to_nobody():
    curriculum = LevelReplay(NumberedSource(9), capacity=3, scored_by="trainer")
    curriculum.replace(1)
    curriculum.report_scores([0, 1, 1], [0, 0, 1], [1.0, 5.0, 2.0])
    assert curriculum.scores().tolist() == [1.0, 2.0, 0.0]
    assert (curriculum.num_orphaned_scores, curriculum.num_orphaned) == (1, 0)


def test_impossible_scores_are_refused_and_nothing_has_changed():
    curriculum = trained()
    score(curriculum, 1.0)
    before = curriculum.snapshot()
    impossible: list[tuple[Any, Any, Any, str]] = [
        ([0, 1], [0, 0], [1.0, np.nan], "score 1 of 2 is nan"),
        ([0, 1], [0, 0], [np.inf, 1.0], "score 0 of 2 is inf"),
        ([0, 4], [0, 0], [1.0, 1.0], "slot 4 does not exist"),
        ([-1], [0], [1.0], "slot -1 does not exist"),
        ([0, 1], [0], [1.0, 1.0], "as many of each"),
        ([0, 1], [0, 0], [1.0], "1 scores for 2 slots"),
        ([0.5], [0], [1.0], "integers"),
        ([[0]], [[0]], [[1.0]], "integers"),
        ([0], [0], ["high"], "not a number"),
    ]
    for slots, generations, scores, words in impossible:
        with pytest.raises(RecordError, match=words):
            curriculum.report_scores(slots, generations, scores)
    assert differences(before, curriculum.snapshot()) == []


def test_scores_are_refused_where_records_make_them():
    with pytest.raises(ConfigError, match="scored_by is 'deviation'"):
        make().report_scores(0, 0, 1.0)


def test_a_trainers_curriculum_needs_no_success():
    curriculum = trained()
    assert not curriculum.needs_success
    curriculum.observe(record_for(curriculum, 0, float("nan")))
    assert curriculum.num_observed == 1


# Eviction.


def test_a_new_task_with_a_low_score_leaves_at_once_and_one_with_a_high_score_stays():
    curriculum = LevelReplay(
        NumberedSource(100), capacity=10, scored_by="trainer", eviction_plays=1
    )
    # Each arrives above all before it, so none is among the lowest.
    score(curriculum, 1.0, 2.0, 3.0, 4.0, 5.0)
    assert curriculum.num_evicted == 0
    # Of six, 1.8 rank low: with one task below it, it goes; with two, it stays.
    score(curriculum, 1.5, first=5)
    assert curriculum.pool.generations[5] == 1
    score(curriculum, 2.5, first=5)
    assert (curriculum.num_evicted, curriculum.num_orphaned_scores) == (1, 0)
    assert curriculum.num_seen == 6


def test_a_task_that_has_lost_its_score_makes_room_once_it_is_known():
    curriculum = LevelReplay(
        NumberedSource(100), capacity=10, temperature=1.0, eviction_plays=8, seed=3
    )
    for slot in range(9):
        play(curriculum, slot, "wfwfwfw")
    play(curriculum, 9, "w" * 7)
    assert curriculum.num_evicted == 0
    play(curriculum, 9, "w")
    assert curriculum.num_evicted == 1
    assert curriculum.pool.generations.tolist() == [0] * 9 + [1]


def test_lists_stay_in_order_while_tasks_come_and_go():
    curriculum = LevelReplay(NumberedSource(10**6), capacity=40, eviction_plays=2, seed=4)
    rng = np.random.default_rng(0)
    for _ in range(300):
        draws = curriculum.draw_batch(8)
        curriculum.report_batch(draws, rng.random(8) < 0.5)
    assert curriculum.num_evicted > 100
    # Restoring checks the lists against each other.
    resumed = LevelReplay(NumberedSource(10**6), capacity=40, eviction_plays=2, seed=4)
    resumed.restore(curriculum.snapshot())
    assert differences(resumed.snapshot(), curriculum.snapshot()) == []


# Inside phases, and damaged.


def test_it_works_inside_a_phase():
    curriculum = Phased(
        NumberedSource(5),
        phases=(
            Phase(name="look", curriculum=LevelReplayConfig(), episodes=30),
            Phase(name="replay", curriculum=LevelReplayConfig(scored_by="trainer")),
        ),
        seed=1,
    )
    live(curriculum, 20)
    curriculum.quarantine(3, 0, "no such map")
    live(curriculum, 20)
    assert curriculum.current_phase == "replay"
    inner: Any = curriculum.inner[1]
    inner.report_scores([0, 1], [0, 0], [1.0, 2.0])
    draws = curriculum.draw(200)
    assert {draw.slot for draw in draws} == {0, 1, 2, 4}
    assert {draw.slot for draw in draws if inner.is_replay(draw)} == {0, 1}


@pytest.mark.parametrize(
    ("path", "place", "number", "words"),
    [
        ("seen.position", 0, 3, "list of seen tasks"),
        (
            "seen.position",
            0,
            10**9,
            r"position\[0\] is 1000000000; expected an integer from -1 to 3",
        ),
        ("seen.listed", 0, 10**9, r"listed\[0\] is 1000000000"),
        ("method.num_seen", 0, 3, "list of seen tasks"),
        ("method.ranks.nodes", (0, 8), 7, r"nodes\[0, 8\] is 7; expected an integer from 0 to 4"),
        ("method.ranks.nodes", (0, 8), 1, "ranks do not count the bins"),
        ("tasks.bin", 0, -5, r"bin\[0\] is -5"),
        ("tasks.bin", 0, 10**9, r"bin\[0\] is 1000000000"),
    ],
)
def test_lists_that_disagree_are_refused(path: str, place: Any, number: float, words: str):
    curriculum = make()
    live(curriculum, 20)
    snapshot = curriculum.snapshot()
    arrays = {key: array.copy() for key, array in snapshot.arrays.items()}
    name, *fields = path.split(".")
    field = arrays[f"method/{name}"]
    for part in fields:
        field = field[part]
    field[place] = number
    with pytest.raises(SnapshotError, match=words):
        curriculum.restore(Snapshot(snapshot.state, arrays))
    assert differences(snapshot, curriculum.snapshot()) == []


# Settings and words.


def test_the_example_of_its_page_runs():
    page = Path(__file__).parents[3] / "docs" / "level_replay.md"
    code = page.read_text().partition("```python\n")[2].partition("```")[0]
    names: dict[str, Any] = {"LevelReplay": LevelReplay, "tasks": NumberedSource(9)}
    exec(code, names)
    # Errors with gamma 0.99: 0.098, 0.196, 0.6; each plus 0.9405 times the next advantage.
    assert names["score"] == pytest.approx((0.6 + 0.7603 + 0.81306) / 3, abs=1e-4)
    assert names["curriculum"].num_seen == 1
    assert names["curriculum"].scores().max() == names["score"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            {"scored_by": "me"},
            "scored_by must be 'deviation', 'trainer', 'value_loss' or 'positive_value_loss'",
        ),
        ({"transform": "max"}, "transform must be 'rank', 'greedy', 'proportional' or 'softmax'"),
        ({"schedule": "none"}, "schedule must be 'proportionate' or 'fixed'; got 'none'"),
        ({"score_weight": 0.0}, r"score_weight must lie in \(0, 1\]; got 0"),
        ({"score_weight": 1.5}, r"score_weight must lie in \(0, 1\]; got 1.5"),
        ({"temperature": 0.0}, r"temperature must lie in \[0\.02, 1e\+06\]; got 0\.0"),
        ({"temperature": np.nan}, "temperature must lie in"),
        ({"temperature": "hot"}, "temperature must lie in"),
        ({"staleness": 1.1}, "staleness must lie in"),
        ({"replay_prob": -0.1}, "replay_prob must lie in"),
        ({"min_seen": 2.0}, "min_seen must lie in"),
        ({"reranked_per_episode": -1}, "reranked_per_episode must be an integer of at least 0"),
        ({"eviction_percentile": 7.0}, "eviction_percentile must lie in"),
        ({"eviction_plays": 0}, "eviction_plays must be an integer of at least 1"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(settings: dict[str, Any], words: str):
    with pytest.raises(ConfigError, match=words):
        LevelReplayConfig(**settings)


def test_what_is_replayed_is_said_in_numbers_and_words():
    curriculum = trained()
    score(curriculum, 0.5, 2.0)
    explanation = curriculum.explain()
    assert isinstance(explanation, LevelReplayExplanation)
    assert (explanation.num_seen, explanation.replay_prob) == (2, pytest.approx(0.5))
    assert explanation.top == (
        ("task1", 2.0, pytest.approx(1 / 3)),
        ("task0", 0.5, pytest.approx(1 / 6)),
    )
    lines = explanation.lines()
    assert lines[1] == (
        "Tasks: 2 with a score, 0 replaced so far; the next draw is a replay with probability 0.50."
    )
    assert lines[2] == f"  {'task1':<24} score 2.000, probability 0.3333"
    assert curriculum.explain(1).reason == "its score ranks 1 of 2"
    assert curriculum.explain(3).reason == (
        "it has no score yet and takes part in the share for unseen tasks"
    )
