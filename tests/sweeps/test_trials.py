"""A sweep: every trial measured as `compare` measures, kept at once, never twice, never lost."""

import json
from pathlib import Path

import pytest

from stepladder.errors import ConfigError, RunError
from stepladder.simulator import swept
from stepladder.simulator.compare import ComparisonCell, compare
from stepladder.simulator.swept import SweepConfig
from stepladder.sweeps import (
    Dimension,
    SweepChoice,
    SweepRange,
    SweepResult,
    SweepTrial,
    sweep,
)
from stepladder.sweeps.study import JOURNAL

pytest.importorskip("optuna")

SMALL = SweepConfig(scenario="chain-3", num_seeds=3)
PROBING = SweepChoice("probing", (0.05, 0.2, 0.5))
TRIALS = SweepChoice("trial_episodes", (20, 40))


class Stop(Exception):
    """Stands for a kill: nothing is said to the sweep."""


def finished_in(folder: Path) -> list[int]:
    """Return the numbers of the trials whose results are in the journal, in that order."""
    lines = map(json.loads, (folder / JOURNAL).read_text().splitlines())
    return [line["trial_id"] for line in lines if "user_attr" in line and "trial_id" in line]


def by_number(result: SweepResult) -> list[dict[str, object]]:
    return [trial.to_json() for trial in result.trials]


def stop_after(count: int) -> object:
    def tell(trial: SweepTrial, done: int, total: int) -> None:
        if done == count:
            raise Stop

    return tell


def test_a_trial_measures_what_compare_measures(tmp_path: Path) -> None:
    result = sweep(SMALL, [SweepChoice("probing", (0.05,))], folder=tmp_path)
    (trial,) = result.trials
    assert trial.params == {"probing": 0.05}
    # 0.05 is the default, so this is the frontier of the comparison.
    assert trial.cell == _unmarked(compare(["chain-3"], ["frontier"], num_seeds=3).cells[2])
    assert trial.cost == trial.cell.ratio_to_oracle


def _unmarked(cell: ComparisonCell) -> ComparisonCell:
    return ComparisonCell(**{**cell.to_json(), "is_winner": False})


def test_all_combinations_are_played_and_ranked(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    result = sweep(
        SMALL,
        [PROBING, TRIALS],
        folder=tmp_path,
        on_trial=lambda trial, done, total: seen.append((done, total)),
    )
    assert [trial.params for trial in result.trials] == [
        {"probing": probing, "trial_episodes": episodes}
        for probing in (0.05, 0.2, 0.5)
        for episodes in (20, 40)
    ]
    assert seen == [(done, 6) for done in range(1, 7)]
    costs = [trial.cost for trial in result.ranked()]
    assert costs == sorted(costs)
    assert len(costs) == 6


def test_the_results_do_not_depend_on_the_number_of_jobs(tmp_path: Path) -> None:
    one = sweep(SMALL, [PROBING, TRIALS], folder=tmp_path / "one", jobs=1)
    many = sweep(SMALL, [PROBING, TRIALS], folder=tmp_path / "many", jobs=5)
    assert by_number(one) == by_number(many)


def test_a_stopped_sweep_goes_on_where_it_was(tmp_path: Path) -> None:
    whole = sweep(SMALL, [PROBING, TRIALS], folder=tmp_path / "whole")
    folder = tmp_path / "stopped"
    with pytest.raises(Stop):
        sweep(SMALL, [PROBING, TRIALS], folder=folder, on_trial=stop_after(2))
    before = (folder / JOURNAL).read_bytes()
    assert len(finished_in(folder)) == 2
    played: list[int] = []
    result = sweep(
        SMALL,
        [PROBING, TRIALS],
        folder=folder,
        on_trial=lambda trial, done, total: played.append(trial.number),
    )
    assert result.num_resumed == 2
    assert by_number(result) == by_number(whole)
    assert (folder / JOURNAL).read_bytes().startswith(before)
    numbers = finished_in(folder)
    assert sorted(numbers) == list(range(6))
    assert sorted(played) == sorted(numbers[2:])


def test_a_finished_sweep_plays_nothing_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = sweep(SMALL, [PROBING], folder=tmp_path)
    told: list[object] = []
    monkeypatch.setattr(swept.Contest, "start", lambda *a: told.append(a))
    again = sweep(SMALL, [PROBING], folder=tmp_path, on_trial=lambda *entry: told.append(entry))
    assert told == []
    assert again.num_resumed == 3
    assert again.trials == first.trials


def test_tuples_come_back_as_tuples(tmp_path: Path) -> None:
    features: list[Dimension] = [SweepChoice("features", ((), ("position",)))]
    first = sweep(SMALL, features, folder=tmp_path)
    assert [trial.params["features"] for trial in first.trials] == [(), ("position",)]
    assert sweep(SMALL, features, folder=tmp_path).trials == first.trials


@pytest.mark.parametrize(
    ("config", "dimensions", "words"),
    [
        (SweepConfig(scenario="chain-3", num_seeds=4), [PROBING], "num_seeds was 3 and is now 4"),
        (SweepConfig(scenario="chain-4", num_seeds=3), [PROBING], "scenario was 'chain-3'"),
        (SMALL, [SweepChoice("probing", (0.05, 0.2, 0.6))], r"values\[2\] was 0.5 and is now 0.6"),
        (SMALL, [TRIALS], "field was 'probing' and is now 'trial_episodes'"),
    ],
)
def test_another_sweep_does_not_go_into_the_same_folder(
    tmp_path: Path, config: SweepConfig, dimensions: list[Dimension], words: str
) -> None:
    sweep(SMALL, [PROBING], folder=tmp_path)
    with pytest.raises(RunError, match=words):
        sweep(config, dimensions, folder=tmp_path)


def test_combinations_that_do_not_go_together_are_left_out_with_the_reason(tmp_path: Path) -> None:
    config = SweepConfig(scenario="chain-3", curriculum="learning-progress", num_seeds=2)
    fast, slow = "fast_halflife_episodes", "slow_halflife_episodes"
    result = sweep(
        config, [SweepChoice(fast, (2.0, 8.0)), SweepChoice(slow, (4.0, 16.0))], folder=tmp_path
    )
    errors = [trial.error for trial in result.trials]
    assert [error is None for error in errors] == [True, True, False, True]
    assert "slow_halflife_episodes must lie above" in (errors[2] or "")
    assert [trial.number for trial in result.ranked()] != []
    assert 2 not in [trial.number for trial in result.ranked()]
    # Known as such when the sweep goes on.
    assert sweep(
        config, [SweepChoice(fast, (2.0, 8.0)), SweepChoice(slow, (4.0, 16.0))], folder=tmp_path
    ).trials == (result.trials)


def test_a_value_that_fits_no_combination_is_refused_before_anything_is_played(
    tmp_path: Path,
) -> None:
    wrong = SweepChoice("probing", (0.1, -1.0))
    with pytest.raises(ConfigError, match=r"probing=-1\.0 fits no combination: probing must lie"):
        sweep(SMALL, [wrong, TRIALS], folder=tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_the_learner_and_the_scenario_can_be_varied_too(tmp_path: Path) -> None:
    result = sweep(
        SMALL,
        [
            SweepChoice("dynamics.eta", (0.05, 0.2)),
            SweepChoice("simulation.scenario", ("chain-2", "chain-3")),
        ],
        folder=tmp_path,
    )
    oracles = [
        trial.cell.mean_samples / trial.cell.ratio_to_oracle
        for trial in result.trials
        if trial.cell is not None
    ]
    # Each is measured against the oracle of its own learner: quicker ones have shorter ways.
    assert oracles[2] < oracles[0] < oracles[1]
    assert oracles[2] < oracles[3] < oracles[1]
    assert [trial.cell.scenario for trial in result.trials if trial.cell] == [
        "chain-2",
        "chain-3",
    ] * 2


def test_a_learner_that_knows_everything_costs_nothing(tmp_path: Path) -> None:
    result = sweep(SMALL, [SweepChoice("dynamics.start", (1.0,))], folder=tmp_path)
    assert result.trials[0].cost == 0.0


def test_where_seeds_do_not_finish_the_area_decides(tmp_path: Path) -> None:
    config = SweepConfig(scenario="chain-10", curriculum="learnability", num_seeds=2, budget=300)
    result = sweep(config, [SweepChoice("exponent", (0.0, 2.0))], folder=tmp_path)
    for trial in result.trials:
        assert trial.cell is not None
        assert trial.cell.mean_samples == 300
        expected = (300 + (1 - trial.cell.area) * 300) / (300 / trial.cell.ratio_to_oracle)
        assert trial.cost == pytest.approx(expected, rel=1e-12)
    assert result.trials[0].cost != result.trials[1].cost


def test_a_range_needs_a_search(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="probing has a range, which only a search can try"):
        sweep(SMALL, [SweepRange("probing", 0.1, 0.2, False, False)], folder=tmp_path / "new")
    for settings in ({"jobs": 0}, {"num_trials": 0}):
        with pytest.raises(ConfigError, match="must be an integer of at least 1"):
            sweep(SMALL, [PROBING], folder=tmp_path / "new", **settings)
    assert not (tmp_path / "new").exists()


def test_a_damaged_trial_is_named(tmp_path: Path) -> None:
    sweep(SMALL, [PROBING], folder=tmp_path)
    path = tmp_path / JOURNAL
    path.write_text(path.read_text().replace('"area"', '"aera"'))
    with pytest.raises(RunError, match=r"trial 0 of .* is damaged \(TypeError: .*'aera'"):
        sweep(SMALL, [PROBING], folder=tmp_path)


class TestSearch:
    dimensions = (SweepRange("probing", 0.01, 0.5, True, False), TRIALS)

    def test_a_stopped_search_ends_as_one_that_was_not(self, tmp_path: Path) -> None:
        whole = sweep(SMALL, self.dimensions, folder=tmp_path / "whole", num_trials=12)
        folder = tmp_path / "stopped"
        for count in (3, 10):
            with pytest.raises(Stop):
                sweep(
                    SMALL, self.dimensions, folder=folder, num_trials=12, on_trial=stop_after(count)
                )
        assert len(finished_in(folder)) == 10
        result = sweep(SMALL, self.dimensions, folder=folder, num_trials=12, jobs=1)
        assert result.num_resumed == 10
        assert by_number(result) == by_number(whole)
        assert len(finished_in(folder)) == 12

    def test_a_search_can_be_given_more_trials(self, tmp_path: Path) -> None:
        first = sweep(SMALL, self.dimensions, folder=tmp_path / "more", num_trials=4)
        more = sweep(SMALL, self.dimensions, folder=tmp_path / "more", num_trials=6)
        assert more.num_resumed == 4
        assert more.trials[:4] == first.trials
        assert len(more.trials) == 6
        at_once = sweep(SMALL, self.dimensions, folder=tmp_path / "at once", num_trials=6)
        assert more.trials == at_once.trials

    def test_a_search_is_no_grid(self, tmp_path: Path) -> None:
        sweep(SMALL, [PROBING], folder=tmp_path)
        with pytest.raises(RunError, match="search was 'grid' and is now 'optuna'"):
            sweep(SMALL, [PROBING], folder=tmp_path, num_trials=3)
