import numpy as np
import pytest

from stepladder.errors import ConfigError
from stepladder.plans.record import Draw
from stepladder.training.opponents.seats import EMPTY, KNOWN_AFTER, Seats
from training.opponents.small_agents import small_member

WIN, DRAW, LOSS = 1, 0, -1


def seats_of(num_members: int, num_seats: int = 4, seed: int = 0) -> Seats:
    seats = Seats("pool", num_seats, seed)
    for number in range(num_members):
        seats.add(small_member(number))
    return seats


def draw_of(seats: Seats, number: int) -> Draw:
    """Draw until a certain opponent comes."""
    for _ in range(10_000):
        draw = seats.draw()
        assert draw is not None
        if draw.task_id == number:
            return draw
    raise AssertionError(f"opponent {number} is never drawn")


def play(seats: Seats, number: int, outcomes: list[int]) -> None:
    for outcome in outcomes:
        seats.report(draw_of(seats, number), outcome)


def report_of(seats: Seats, name: str):
    return next(report for report in seats.explain() if report.name == name)


def test_nobody_is_drawn_from_empty_seats() -> None:
    assert Seats("pool", 4, 0).draw() is None


def test_only_members_are_drawn_while_some_seats_are_empty() -> None:
    seats = seats_of(2, num_seats=8)
    drawn = {draw.task_id for _ in range(300) if (draw := seats.draw())}
    assert drawn == {0, 1}
    assert all(report.name != EMPTY for report in seats.explain())


def test_probabilities_follow_the_expectation_of_p_times_one_minus_p() -> None:
    seats = seats_of(3)
    play(seats, 0, [WIN] * 9)
    play(seats, 1, [WIN, LOSS, WIN, LOSS])
    play(seats, 2, [DRAW] * 4)
    reports = {report.name: report for report in seats.explain()}
    total = sum(report.learnability for report in reports.values())
    for report in reports.values():
        assert report.prob == pytest.approx(report.learnability / total)
    # With the prior's one success and one failure, and results fading by a half in 20 games.
    keep = 0.5 ** (1 / 20)
    wins = 1 + sum(keep**age for age in range(9))
    assert reports["seed 0"].learnability == pytest.approx(wins / ((wins + 1) * (wins + 2)))
    # Four draws are two wins and two losses; four results have faded alike in both.
    half = 1 + sum(keep**age for age in range(4)) / 2
    assert reports["seed 2"].score == 0.5
    assert reports["seed 2"].learnability == pytest.approx(half**2 / (2 * half * (2 * half + 1)))
    assert reports["seed 0"].prob < reports["seed 1"].prob
    assert reports["seed 0"].num_games == 9


def test_draws_come_as_often_as_their_probabilities_say() -> None:
    seats = seats_of(2)
    play(seats, 0, [WIN] * 12)
    prob = report_of(seats, "seed 0").prob
    drawn = [draw.task_id for _ in range(4_000) if (draw := seats.draw())]
    assert np.mean(np.array(drawn) == 0) == pytest.approx(prob, abs=0.03)


@pytest.mark.parametrize("outcome", [WIN, LOSS])
def test_whoever_is_always_or_never_beaten_makes_room(outcome: int) -> None:
    seats = seats_of(3, num_seats=3)
    play(seats, 1, [outcome] * KNOWN_AFTER)
    play(seats, 0, [WIN, LOSS] * (KNOWN_AFTER // 2))
    # Likewise, but not often enough to be sent away.
    play(seats, 2, [outcome] * 5)
    assert seats.add(small_member(9)) == 3
    assert list(seats.members) == [0, 2, 3]


def test_while_nobody_is_well_known_the_oldest_makes_room() -> None:
    seats = seats_of(3, num_seats=3)
    seats.add(small_member(9))
    assert list(seats.members) == [1, 2, 3]


def test_a_result_of_one_who_has_left_is_credited_to_nobody() -> None:
    seats = seats_of(2, num_seats=2)
    before_leaving = draw_of(seats, 0)
    newcomer = seats.add(small_member(9))
    seats.report(before_leaving, LOSS)
    assert seats.curriculum.num_orphaned == 1
    assert seats.curriculum.num_observed == 1
    assert [report.num_games for report in seats.explain()] == [0, 0]
    seats.report(draw_of(seats, newcomer), WIN)
    assert report_of(seats, "seed 9").num_games == 1


def test_a_removed_opponent_is_drawn_no_more_and_the_seat_is_free() -> None:
    seats = seats_of(3, num_seats=3)
    seats.remove(1)
    assert {draw.task_id for _ in range(200) if (draw := seats.draw())} == {0, 2}
    seats.add(small_member(9))
    assert list(seats.members) == [0, 2, 3]


def test_the_same_seed_draws_the_same_and_another_does_not() -> None:
    def drawn(seed: int) -> list[int]:
        seats = seats_of(4, seed=seed)
        return [draw.task_id for _ in range(50) if (draw := seats.draw())]

    assert drawn(3) == drawn(3)
    assert drawn(3) != drawn(4)


def test_restored_seats_go_on_as_if_nothing_had_happened() -> None:
    seats = seats_of(5, num_seats=3)
    play(seats, 3, [WIN, LOSS, DRAW])
    in_flight = seats.draw()
    assert in_flight is not None
    members = list(seats.members.values())
    saved = seats.snapshot(members.index)

    def future(these: Seats) -> list[object]:
        these.report(in_flight, WIN)
        these.add(small_member(9))
        drawn = [draw for _ in range(20) if (draw := these.draw())]
        return [drawn, these.explain(), list(these.members)]

    other = Seats("pool", 3, 0)
    other.restore(saved, members)
    assert future(other) == future(seats)


@pytest.mark.parametrize("outcome", [2, 0.5, None, float("nan")])
def test_what_is_no_outcome_is_refused(outcome: object) -> None:
    seats = seats_of(1)
    draw = seats.draw()
    assert draw is not None
    with pytest.raises(ConfigError, match=r"outcome must be 1 .*got"):
        seats.report(draw, outcome)  # pyright: ignore[reportArgumentType]
