"""The study of a sweep: the same values every time, results that stay, and nothing else gets in."""

import sys
from pathlib import Path

import pytest

from stepladder.errors import ConfigError, RunError
from stepladder.sweeps.space import SweepChoice, SweepRange
from stepladder.sweeps.study import JOURNAL, SEARCH_ROUND, SWEEP_LOCK, SweepParams, SweepStudy
from test_files import IRREGULAR

optuna = pytest.importorskip("optuna")

X = SweepRange("x", 0.01, 1.0, log=True, whole=False)
N = SweepRange("n", 1, 64, log=False, whole=True)
KIND = SweepChoice("kind", (None, ("a", "b"), "c"))
DIMENSIONS = [X, N, KIND]
SETTINGS = {"num_seeds": 8, "grid": {"probing": [0.1, 0.2]}}

Told = dict[int, tuple[SweepParams, float | None]]


def opened(folder: Path, settings: dict[str, object] = SETTINGS, seed: int = 0) -> SweepStudy:
    return SweepStudy(folder, settings, DIMENSIONS, seed)


def told(folder: Path, settings: dict[str, object] = SETTINGS) -> Told:
    study = opened(folder, settings)
    study.close()
    return {t.number: (study.params(t), t.value) for t in study.finished()}


def cost(params: SweepParams) -> float:
    return (params["x"] - 0.3) ** 2 + abs(params["n"] - 20) / 100


def searched(folder: Path, num_trials: int, seed: int = 0, stop_after: int | None = None) -> Told:
    """Search, or go on with it; end without a word after so many results."""
    study = opened(folder, seed=seed)
    count = 0
    for trials in study.rounds(num_trials):
        # Backwards: results may come in any order.
        for trial in reversed(trials):
            if count == stop_after:
                study.close()
                return {}
            study.record(trial.number, cost(study.params(trial)), {})
            count += 1
    study.close()
    return {trial.number: (study.params(trial), trial.value) for trial in study.finished()}


class TestSearch:
    def test_proposals_keep_to_their_ranges_and_can_be_typed(self, tmp_path: Path) -> None:
        told = searched(tmp_path, 30)
        assert sorted(told) == list(range(30))
        for params, _ in told.values():
            assert list(params) == ["x", "n", "kind"]
            assert 0.01 <= params["x"] <= 1.0
            assert params["x"] == float(f"{params['x']:.4g}")
            assert isinstance(params["n"], int)
            assert 1 <= params["n"] <= 64
            assert params["kind"] in KIND.values

    def test_the_same_seed_proposes_the_same_and_another_does_not(self, tmp_path: Path) -> None:
        first = searched(tmp_path / "a", 20, seed=3)
        assert first == searched(tmp_path / "b", 20, seed=3)
        assert first != searched(tmp_path / "c", 20, seed=4)

    def test_no_two_trials_of_the_first_rounds_are_alike(self, tmp_path: Path) -> None:
        assert len({params["x"] for params, _ in searched(tmp_path, 16).values()}) == 16

    @pytest.mark.parametrize("results", [0, 3, SEARCH_ROUND, SEARCH_ROUND + 3])
    def test_a_search_that_is_continued_proposes_what_it_would_have(
        self, tmp_path: Path, results: int
    ) -> None:
        whole = searched(tmp_path / "whole", 24)
        searched(tmp_path / "stopped", 24, stop_after=results)
        assert searched(tmp_path / "stopped", 24) == whole

    def test_more_trials_continue_as_if_they_had_been_asked_for_at_once(
        self, tmp_path: Path
    ) -> None:
        whole = searched(tmp_path / "whole", 24)
        first = searched(tmp_path / "more", 12)
        assert first == {number: entry for number, entry in whole.items() if number < 12}
        assert searched(tmp_path / "more", 24) == whole

    def test_a_round_that_was_cut_short_while_it_was_proposed_is_completed(
        self, tmp_path: Path
    ) -> None:
        whole = searched(tmp_path / "whole", 16)
        searched(tmp_path / "cut", 16, stop_after=0)
        path = tmp_path / "cut" / JOURNAL
        lines = path.read_bytes().splitlines(keepends=True)
        # The study, its direction, the settings and five proposals remain.
        path.write_bytes(b"".join(lines[:-3]) + lines[-3][:20])
        assert searched(tmp_path / "cut", 16) == whole

    def test_it_learns_from_what_it_is_told(self, tmp_path: Path) -> None:
        costs = [cost or 0.0 for _, cost in searched(tmp_path, 64).values()]
        assert sum(costs[48:]) / 16 < 0.5 * sum(costs[:16]) / 16

    def test_a_trial_that_could_not_be_played_is_no_obstacle(self, tmp_path: Path) -> None:
        study = opened(tmp_path)
        (first, *_) = next(study.rounds(1))
        study.record(first.number, None, {"error": "they do not go together"})
        study.close()
        told = searched(tmp_path, 16)
        assert len(told) == 16
        assert told[0][1] is None


def test_results_are_in_the_file_at_once_and_when_it_is_opened_again(tmp_path: Path) -> None:
    study = opened(tmp_path / "new/sweep")
    assert study.finished() == []
    (trial,) = next(study.rounds(1))
    study.record(trial.number, 0.25, {"cell": None, "error": "why"})
    assert '"why"' in (study.folder / JOURNAL).read_text()
    assert sorted(path.name for path in study.folder.iterdir()) == [JOURNAL, SWEEP_LOCK]
    study.close()
    assert told(study.folder) == {0: (study.params(trial), 0.25)}


def test_optuna_itself_can_open_the_study(tmp_path: Path) -> None:
    searched(tmp_path, 3)
    journal = optuna.storages.journal.JournalFileBackend(str(tmp_path / JOURNAL))
    study = optuna.load_study(study_name=None, storage=optuna.storages.JournalStorage(journal))
    assert study.best_value == min(trial.value for trial in study.trials if trial.value)
    assert set(study.best_params) == {"x", "n", "kind"}


def test_half_a_line_is_cut_off_and_the_next_one_stands_alone(tmp_path: Path) -> None:
    before = searched(tmp_path, 2)
    with (tmp_path / JOURNAL).open("a") as file:
        file.write('{"op_code":6,"wor')
    assert told(tmp_path) == before
    assert len(searched(tmp_path, 4)) == 4


def test_other_settings_are_refused_with_the_difference(tmp_path: Path) -> None:
    assert told(tmp_path) == {}
    with pytest.raises(RunError, match="with other settings: num_seeds was 8 and is now 9"):
        opened(tmp_path, {**SETTINGS, "num_seeds": 9})
    with pytest.raises(RunError, match=r"grid\.probing\[1\] was 0.2 and is now 0.3"):
        opened(tmp_path, {**SETTINGS, "grid": {"probing": [0.1, 0.3]}})
    # A refusal leaves nothing locked.
    assert told(tmp_path) == {}


def test_another_version_is_other_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told(tmp_path)
    monkeypatch.setattr("stepladder.__version__", "99.0")
    with pytest.raises(RunError, match=r"version was '.*' and is now '99\.0'"):
        opened(tmp_path)


def test_only_one_at_a_time_may_add_trials(tmp_path: Path) -> None:
    study = opened(tmp_path)
    with pytest.raises(RunError, match="is being written by process"):
        opened(tmp_path)
    study.close()
    assert told(tmp_path) == {}


@pytest.mark.parametrize("name", ["thesis.tex", "trials.jsonl"])
def test_a_folder_with_something_else_in_it_stays_as_it_is(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("years of work")
    with pytest.raises(RunError, match=rf"is not empty and does not hold a sweep: it has '{name}'"):
        opened(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    with pytest.raises(RunError, match=rf"{name} is a file"):
        opened(tmp_path / name)


@pytest.mark.timeout(30)
@pytest.mark.parametrize("name", [JOURNAL, SWEEP_LOCK])
@pytest.mark.parametrize("kind", IRREGULAR)
def test_only_regular_files_are_opened(tmp_path: Path, name: str, kind: str) -> None:
    folder = tmp_path / "sweep"
    told(folder)
    (folder / name).unlink()
    IRREGULAR[kind](folder / name)
    before = sorted(folder.iterdir())
    with pytest.raises(RunError, match="it is a") as caught:
        opened(folder)
    assert "\n" not in str(caught.value)
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(
    "text",
    ["nonsense", "[" * 100_000, '{"a": NaN}', "1e400", "null", '{"op_code": 4}', '{"op_code": []}'],
)
def test_a_damaged_journal_is_refused_in_one_line(tmp_path: Path, text: str) -> None:
    searched(tmp_path, 2)
    with (tmp_path / JOURNAL).open("a") as file:
        file.write(f"{text}\n{text}\n")
    with pytest.raises(RunError, match=r"cannot be used .* Check study\.log") as caught:
        opened(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_missing_package_is_named_with_its_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ConfigError, match=r"pip install 'stepladder\[sweep\]'") as caught:
        opened(tmp_path / "new")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "new").exists()
