"""Who is drawn next: shares, turns, patience, and what lies near a mastered task."""

from typing import Any

import numpy as np
import pytest

from curricula.fake_learner import record_for
from curricula.short_memory import BARE, draw_and_fail, make, on_a_line, overview, play, told
from stepladder.curricula import Frontier
from stepladder.tasks import ListSource, NumberedSource, Task, UnionSource

# Shares of the draws.


def test_before_the_first_result_all_tasks_are_alike():
    assert make().probs().tolist() == pytest.approx([1 / 3] * 3)


def test_the_zone_has_the_most_then_probing_then_rehearsal():
    curriculum = make(5)
    play(curriculum, 0, "fw")
    play(curriculum, 1, "wwww")
    # 1 for the zone, 0.5 for the three that are probed, 0.25 for the mastered one.
    expected = np.array([1.0, 0.25, 0.5 / 3, 0.5 / 3, 0.5 / 3]) / 1.75
    np.testing.assert_allclose(curriculum.probs(), expected)


def test_tasks_in_the_zone_share_it():
    curriculum = make(2)
    play(curriculum, 0, "fw")
    play(curriculum, 1, "fww")
    assert curriculum.states() == ["zone", "zone"]
    assert curriculum.probs().tolist() == pytest.approx([0.5, 0.5])


def test_a_single_task_is_drawn_whatever_it_does():
    curriculum = make(1)
    for results in ("f", "w", "www", "ff", "hhhhhhhhhhh", "f"):
        play(curriculum, 0, results)
        assert curriculum.probs().tolist() == [1.0]
        assert curriculum.draw_one().slot == 0


def test_the_sources_weights_count_in_every_state():
    union = UnionSource([(ListSource([Task("x")]), 1.0), (ListSource([Task("y")]), 3.0)])
    for results, state in (("", "probed"), ("fw", "zone"), ("fwww", "mastered")):
        curriculum = Frontier(union, **BARE)
        for slot in (0, 1):
            play(curriculum, slot, results)
        if state == "mastered":
            # The second was mastered while the first had its turn; with that, a round begins.
            assert curriculum.probs().tolist() == [1.0, 0.0]
            play(curriculum, 0, "w")
        assert curriculum.states() == [state] * 2
        assert curriculum.probs().tolist() == pytest.approx([0.25, 0.75])


class SomeWithoutWeight(NumberedSource):
    """Tasks of which every other has weight 0."""

    def weight(self, task_id: int) -> float:
        return float(task_id % 2)

    def weights(self, task_ids: Any) -> Any:
        return (task_ids % 2).astype(np.float64)


def test_tasks_without_weight_are_not_drawn_and_hold_up_no_round():
    curriculum = Frontier(SomeWithoutWeight(6), **BARE)
    slots = draw_and_fail(curriculum, 30)
    assert set(slots) == {1, 3, 5}
    assert overview(curriculum).num_barren_rounds == 10
    # Not even when they would be worth it.
    play(curriculum, 0, "fw")
    assert curriculum.states()[0] == "zone"
    assert curriculum.probs()[0] == 0.0
    np.testing.assert_allclose(curriculum.probs().sum(), 1.0)


# Rounds.


def test_every_probed_task_has_its_turn_before_any_is_probed_again():
    curriculum = make(7, rehearsal=1e-9)
    slots = np.array(draw_and_fail(curriculum, 70)).reshape(10, 7)
    assert np.all(np.sort(slots, axis=1) == np.arange(7))
    # In another order each time.
    assert len({tuple(row) for row in slots.tolist()}) > 5


def test_mastered_tasks_are_rehearsed_in_turn():
    curriculum = make(5)
    for slot in range(5):
        play(curriculum, slot, "wwww")
    assert curriculum.states() == ["mastered"] * 5
    # The first has had its turn alone; then the others were mastered.
    assert curriculum.draw_one().slot == 0
    play(curriculum, 0, "w")
    slots: list[int] = []
    for _ in range(50):
        draw = curriculum.draw_one()
        curriculum.report(draw, 1.0)
        slots.append(draw.slot)
    assert np.all(np.sort(np.array(slots).reshape(10, 5), axis=1) == np.arange(5))


def test_a_task_that_drops_out_of_the_zone_waits_for_the_next_round():
    curriculum = make(3)
    play(curriculum, 0, "fw")
    play(curriculum, 1, "f")
    play(curriculum, 0, "ff")
    assert curriculum.states() == ["probed"] * 3
    assert curriculum.probs().tolist() == [0.0, 0.0, 1.0]
    play(curriculum, 2, "f")
    assert curriculum.probs().tolist() == pytest.approx([1 / 3] * 3)


def test_a_batch_counts_as_many_rounds_as_its_records_one_by_one():
    records = [(slot, 0.0) for slot in (0, 1, 2, 2, 0, 1, 1, 0, 2, 0)]
    together, apart = make(), make()
    together.observe([record_for(together, slot, success) for slot, success in records])
    for slot, success in records:
        apart.observe(record_for(apart, slot, success))
    assert overview(together).num_barren_rounds == overview(apart).num_barren_rounds == 3
    np.testing.assert_array_equal(together.probs(), apart.probs())
    assert together.probs()[0] == 0.0


def test_barren_rounds_shift_the_share_of_probing_to_rehearsal():
    curriculum = make(2, patience_rounds=2.0)
    play(curriculum, 0, "wwww")
    assert overview(curriculum).num_barren_rounds == 0
    # 0.5 for probing against 0.25; of probing 2/n is left after n > 2 rounds, here of one play.
    for num_rounds, probing in ((1, 0.5), (2, 0.5), (3, 1 / 3), (4, 0.25), (5, 0.2)):
        play(curriculum, 1, "f")
        assert overview(curriculum).num_barren_rounds == num_rounds
        assert curriculum.probs()[1] == pytest.approx(probing / (probing + 0.25))
    play(curriculum, 1, "f" * 995)
    assert curriculum.probs()[1] == pytest.approx(0.001 / 0.251)


def test_patience_is_restored_by_what_is_newly_mastered_alone():
    curriculum = make(3)
    play(curriculum, 2, "wwww")
    play(curriculum, 0, "f")
    play(curriculum, 1, "f")
    assert overview(curriculum).num_barren_rounds == 1
    # Found is not enough, nor a good trial: noise can do as much.
    play(curriculum, 0, "w" + "fwfw")
    assert told(curriculum, 0).numbers["level"] == 0.5
    assert (curriculum.states()[0], overview(curriculum).num_barren_rounds) == ("zone", 1)
    # What had lapsed is nothing new: else forgetting would keep up the hope for more.
    play(curriculum, 2, "f" + "www")
    assert (curriculum.states()[2], overview(curriculum).num_barren_rounds) == ("mastered", 1)
    play(curriculum, 0, "www")
    assert (curriculum.states()[0], overview(curriculum).num_barren_rounds) == ("mastered", 0)


# Tasks that no env can build.


def test_when_the_last_of_a_round_is_lost_the_next_round_begins():
    curriculum = make(3, rehearsal=1e-9)
    first, second = draw_and_fail(curriculum, 2)
    last = ({0, 1, 2} - {first, second}).pop()
    assert curriculum.probs()[last] == pytest.approx(1.0)
    assert curriculum.quarantine(last, 0, "no such map")
    assert curriculum.probs()[[first, second]].tolist() == pytest.approx([0.5, 0.5])
    for _ in range(5):
        assert set(draw_and_fail(curriculum, 2)) == {first, second}


@pytest.mark.parametrize("results", ["", "f", "fw", "fwww", "fwwwf", "fwff"])
def test_a_lost_task_stays_out_whatever_results_come_late(results: str):
    curriculum = make(4)
    play(curriculum, 3, results)
    assert curriculum.quarantine(3, 0, "no such map")
    for _ in range(6):
        for late in ("w", "f", "wwww", "ff"):
            play(curriculum, 3, late)
            assert curriculum.probs()[3] == 0.0
            assert not np.any(curriculum.plan.leaves(curriculum.plan.tables[0])[:, 3])
            assert 3 not in draw_and_fail(curriculum, 2)
    assert told(curriculum, 3).reason.startswith("it is quarantined")


def test_when_the_whole_zone_is_lost_the_others_share():
    curriculum = make(3)
    play(curriculum, 0, "fw")
    assert curriculum.quarantine(0, 0, "no such map")
    assert curriculum.probs().tolist() == pytest.approx([0.0, 0.5, 0.5])


# Features.


def test_tasks_near_a_mastered_one_are_probed_first():
    curriculum = on_a_line(6)
    np.testing.assert_allclose(curriculum.probs(), 1 / 6)
    play(curriculum, 0, "wwww")
    # Of 1 + 0.99 + 0.9801 + 0.970299 = 3.9404 far probes, 1 has led to mastery; with what is
    # assumed of 10 probes of each kind, far yields 1.1 / 13.9404 = 0.0789, near 1 / 10.
    far = 1.1 / 13.940399
    far_share = far / (far + 0.1)
    probs = np.array([0.25, 0.5 * (1 - far_share), *[0.5 * far_share / 4] * 4]) / 0.75
    np.testing.assert_allclose(curriculum.probs(), probs)
    assert curriculum.probs()[1] > 4 * curriculum.probs()[2]
    assert told(curriculum, 1).reason.endswith("among the first because a neighbour is mastered")
    assert "neighbour" not in told(curriculum, 2).reason


@pytest.mark.parametrize(("features", "near"), [(("x",), [1]), (("x", "y"), [1, 2])])
def test_every_feature_adds_to_the_number_of_neighbors(features: tuple[str, ...], near: list[int]):
    # Each place is twice as far away as the one before. The nearest of 0 is 1; that of any other is
    # the one before it, and then comes the one before that.
    tasks = [Task(f"task{x}", params={"x": x, "y": x}) for x in (0, 1, 3, 7, 15)]
    curriculum = Frontier(tasks, **{**BARE, "features": features, "num_neighbors": 1})
    play(curriculum, 0, "wwww")
    assert [slot for slot in range(5) if "neighbour" in told(curriculum, slot).reason] == near


def test_neighbors_are_no_longer_near_when_a_task_lapses():
    curriculum = on_a_line(6)
    play(curriculum, 1, "wwww")
    near = curriculum.probs()
    assert near[0] == near[2] > near[3]
    play(curriculum, 1, "f")
    assert curriculum.states() == ["probed", "zone", *["probed"] * 4]
    far = curriculum.probs()
    assert far[0] == far[2] == far[3] > 0


def test_a_task_is_near_as_long_as_one_neighbor_is_mastered():
    curriculum = on_a_line(5)
    play(curriculum, 0, "wwww")
    play(curriculum, 2, "wwww")
    play(curriculum, 0, "ff")
    assert "neighbour" in told(curriculum, 1).reason
    play(curriculum, 2, "ff")
    assert "neighbour" not in told(curriculum, 1).reason


def test_what_becomes_near_once_more_keeps_its_turn():
    curriculum = on_a_line(7)
    for slot in (0, 4):
        play(curriculum, slot, "wwww")
    # 1, 3 and 5 are near; 1 has had its turn.
    play(curriculum, 1, "f")
    assert curriculum.probs()[1] == 0.0
    play(curriculum, 2, "wwww")
    assert curriculum.probs()[1] == 0.0
    play(curriculum, 3, "f")
    play(curriculum, 5, "f")
    assert curriculum.probs()[1] == curriculum.probs()[3] == curriculum.probs()[5] > 0.0


def test_neighbors_that_are_mastered_or_learnable_stay_where_they_are():
    curriculum = on_a_line(7)
    play(curriculum, 4, "wwww")
    play(curriculum, 0, "wwww")
    play(curriculum, 4, "w")
    # Both are due for rehearsal; with that, 0 has had its turn, and 4 has not.
    play(curriculum, 0, "w")
    play(curriculum, 2, "fw")
    play(curriculum, 1, "wwww")
    assert curriculum.states() == [
        "mastered",
        "mastered",
        "zone",
        "probed",
        "mastered",
        *["probed"] * 2,
    ]
    probs = curriculum.probs()
    assert (probs[0], probs[1]) == (0.0, 0.0)
    assert probs[2] / probs[4] == pytest.approx(1.0 / 0.25)


def test_finds_of_long_ago_count_less():
    curriculum = on_a_line(8)
    play(curriculum, 0, "wwww")
    play(curriculum, 7, "f" * 20)
    far = (0.99**20 + 0.1) / (10.0 + (1 - 0.99**24) / 0.01)
    ratio = curriculum.probs()[1] / curriculum.probs()[2:].sum()
    assert ratio == pytest.approx(0.1 / far)


def test_where_probing_near_finds_nothing_it_is_done_less():
    curriculum = on_a_line(8)
    play(curriculum, 0, "wwww")
    before = curriculum.probs()[1]
    play(curriculum, 1, "f" * 60)
    # 45.3 fading probes and none found: 1 / 55.3 = 0.018 against 0.079.
    far, near = 1.1 / 13.940399, 1.0 / (10.0 + (1 - 0.99**60) / 0.01)
    assert curriculum.probs()[1] < before / 2
    assert curriculum.probs()[1] / curriculum.probs()[2:].sum() == pytest.approx(near / far)


def test_what_was_found_near_and_never_mastered_is_no_find():
    curriculum = on_a_line(8)
    play(curriculum, 0, "wwww")
    before = curriculum.probs()[1]
    # Found three times, and lost three times.
    play(curriculum, 1, "fwff" * 3)
    assert curriculum.states()[1] == "probed"
    assert curriculum.probs()[1] < before
    # Found, practised and mastered.
    play(curriculum, 1, "wwww")
    assert curriculum.states()[1] == "mastered"
    # 6 probes before and 1 now, the rest was practice: 2 / (10 + 6.79).
    near_probes = (1 - 0.99**7) / 0.01
    near, far = 2.0 / (10.0 + near_probes), 1.1 / 13.940399
    assert curriculum.probs()[2] / curriculum.probs()[3:].sum() == pytest.approx(near / far)


def test_rounds_of_near_tasks_are_barren_too_when_there_are_no_others():
    curriculum = on_a_line(3, patience_rounds=2.0)
    play(curriculum, 1, "wwww")
    for _ in range(4):
        play(curriculum, 0, "f")
        play(curriculum, 2, "f")
    assert overview(curriculum).num_barren_rounds == 4
    # 0.5 · 2/4 for probing the two near ones, 0.25 for rehearsal.
    assert curriculum.probs().tolist() == pytest.approx([0.25, 0.5, 0.25])
    # With others about, a round counts for as many of all as it holds: here one of four.
    curriculum = on_a_line(5)
    play(curriculum, 0, "wwww")
    play(curriculum, 1, "f" * 3)
    assert overview(curriculum).num_barren_rounds == 0
    play(curriculum, 1, "f")
    assert overview(curriculum).num_barren_rounds == 1
    for slot in (2, 3, 4):
        play(curriculum, slot, "f")
    assert overview(curriculum).num_barren_rounds == 1
    play(curriculum, 1, "f")
    assert overview(curriculum).num_barren_rounds == 2


def test_the_cost_of_a_record_is_flat_with_features_too():
    # Counted, not timed: words of the plan that a record changes at most, mastery included. A tree
    # over ten times as many tasks is at most 4 levels deeper; with two neighbours a record moves
    # three tasks out of one layer and into another.
    most: list[int] = []
    for num_tasks in (300, 3000):
        curriculum = on_a_line(num_tasks)
        changed = 0
        for result in "fwwwwwff":
            before = curriculum.plan.block.copy()
            play(curriculum, 100, result)
            changed = max(changed, int(np.count_nonzero(curriculum.plan.block != before)))
        most.append(changed)
    assert most[1] <= most[0] + 4 * 6
