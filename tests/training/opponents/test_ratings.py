import pytest
from openskill.models import BradleyTerryFull

from stepladder.errors import SnapshotError
from stepladder.training.opponents.ratings import PairGames, Rating, Ratings


def entry(*games: PairGames, learner: str | None = None, origin: str | None = None, batch: int = 0):
    return {
        "origin": origin,
        "batch": batch,
        "learner": learner,
        "games": [vars(one) for one in games],
    }


def played(*games: PairGames, learner: str | None = None) -> Ratings:
    ratings = Ratings()
    ratings.apply(entry(*games, learner=learner))
    return ratings


def test_a_beginner_has_the_rating_zero() -> None:
    assert Rating().value == pytest.approx(0.0)
    assert (Rating().mu, Rating().num_games) == (25.0, 0)


def test_a_game_moves_both_as_the_package_says() -> None:
    model = BradleyTerryFull()
    (winner,), (loser,) = model.rate([[model.rating()], [model.rating()]])
    ratings = played(PairGames.of("one", "two", [1]))
    assert (ratings["one"].mu, ratings["one"].sigma) == (winner.mu, winner.sigma)
    assert (ratings["two"].mu, ratings["two"].sigma) == (loser.mu, loser.sigma)
    assert ratings["one"].value == winner.ordinal()


def test_a_draw_is_a_draw() -> None:
    even = played(PairGames.of("one", "two", [0]))
    assert even["one"].mu == even["two"].mu == 25.0
    assert even["one"].sigma < Rating().sigma
    # A draw brings two who are apart nearer to each other.
    apart = played(PairGames.of("one", "two", [1, 1, 1]))
    drawn = played(PairGames.of("one", "two", [1, 1, 1, 0]))
    assert drawn["one"].mu < apart["one"].mu
    assert drawn["two"].mu > apart["two"].mu


def test_results_are_counted_on_both_sides() -> None:
    ratings = played(PairGames.of("one", "two", [1, 1, 0, -1]))
    one, two = ratings["one"], ratings["two"]
    assert (one.num_won, one.num_drawn, one.num_lost) == (2, 1, 1)
    assert (two.num_won, two.num_drawn, two.num_lost) == (1, 1, 2)
    assert one.num_games == 4


def test_the_better_player_gets_the_better_rating_and_certainty_grows() -> None:
    few = played(PairGames.of("one", "two", [1, 1, -1]))
    many = played(PairGames.of("one", "two", [1, 1, -1] * 20))
    assert many["one"].mu > 25.0 > many["two"].mu
    assert many["one"].sigma < few["one"].sigma


def test_games_of_a_learner_move_its_own_rating_only() -> None:
    ratings = played(PairGames.of("learner", "fixed", [1, 1]), learner="learner")
    assert ratings["fixed"] == Rating()
    assert ratings["learner"].num_won == 2
    assert ratings["learner"].mu > 25.0


def test_pairs_take_turns_so_that_none_counts_before_the_others() -> None:
    whole = played(PairGames.of("a", "b", [1, -1]), PairGames.of("a", "c", [1, -1]))
    ratings = Ratings()
    for outcome in (1, -1):
        for other in ("b", "c"):
            ratings.apply(entry(PairGames.of("a", other, [outcome])))
    assert whole.to_json() == ratings.to_json()


def test_a_numbered_batch_is_counted_once() -> None:
    ratings = Ratings()
    for batch in (0, 1, 0, 1):
        ratings.apply(entry(PairGames.of("one", "two", [1]), origin="run", batch=batch))
    assert ratings["one"].num_games == 2
    assert ratings.has_batch("run", 1)
    assert not ratings.has_batch("run", 2)
    assert not ratings.has_batch(None, 0)


def test_one_who_enters_begins_with_the_rating_of_the_learner_and_no_games() -> None:
    ratings = played(PairGames.of("learner", "fixed", [1]), learner="learner")
    ratings.apply({"entered": "sac-1", "as": "learner"})
    assert ratings["sac-1"].value == ratings["learner"].value
    assert ratings["sac-1"].num_games == 0


def test_ratings_come_back_from_json() -> None:
    ratings = played(PairGames.of("one", "two", [1, 0, -1]))
    assert Ratings.from_json(ratings.to_json()).to_json() == ratings.to_json()


@pytest.mark.parametrize(
    "broken",
    [
        None,
        [],
        {},
        {"origin": None, "batch": 0, "learner": None, "games": [{"one": "a"}]},
        {"origin": None, "batch": "x", "learner": None, "games": []},
        {
            "origin": None,
            "batch": 0,
            "learner": None,
            "games": [{"one": "a", "two": "b", "outcomes": "wx"}],
        },
    ],
)
def test_an_entry_without_sense_is_refused_and_changes_nothing(broken: object) -> None:
    ratings = played(PairGames.of("one", "two", [1]))
    before = ratings.to_json()
    with pytest.raises(SnapshotError, match="damaged"):
        ratings.apply(broken)  # pyright: ignore[reportArgumentType]
    assert ratings.to_json() == before


@pytest.mark.parametrize("broken", [None, {}, {"ratings": {"a": {}}, "batches": {}}])
def test_ratings_that_are_none_are_refused(broken: object) -> None:
    with pytest.raises(SnapshotError, match="damaged"):
        Ratings.from_json(broken)
