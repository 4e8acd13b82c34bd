"""A sweep is read without a trace: its trials, what mattered, and what cannot be read."""

from pathlib import Path

import pytest

from stepladder.errors import RunError
from stepladder.simulator.swept import SweepConfig
from stepladder.sweeps import parse_choice, sweep
from stepladder.sweeps.reading import (
    CORRELATION,
    PED_ANOVA,
    ReadTrial,
    correlations,
    read_sweep,
)

CONFIG = SweepConfig(scenario="chain-3", num_seeds=1, budget=600)


def _sweep(folder: Path, probing: str = "0.02,0.1,0.3,0.9") -> Path:
    fields = CONFIG.fields()
    grid = [
        parse_choice(f"probing={probing}", fields),
        parse_choice("pooled=true,false", fields),
    ]
    sweep(CONFIG, grid, folder=folder, jobs=1)
    return folder


def test_a_sweep_is_read_as_it_was_saved_and_left_alone(tmp_path: Path):
    folder = _sweep(tmp_path / "sweep")
    journal = folder / "study.log"
    whole = journal.read_bytes()
    # Another process is writing a line.
    journal.write_bytes(whole + b'{"op_code": 9, "wor')
    journal.chmod(0o400)
    before = journal.read_bytes(), sorted(path.name for path in folder.iterdir())
    found = read_sweep(folder)
    assert (journal.read_bytes(), sorted(path.name for path in folder.iterdir())) == before
    assert len(found.trials) == 8
    assert found.settings["scenario"] == "chain-3"
    first = found.trials[0]
    assert (first.state, first.params) == ("complete", {"probing": 0.02, "pooled": True})
    assert first.cost == first.result["cost"]
    assert sum(found.importance.values()) == pytest.approx(1.0)
    # The best tenth of eight trials would be one.
    assert found.measure == CORRELATION


def test_the_best_tenth_is_compared_from_forty_trials_on(tmp_path: Path):
    probing = ",".join(f"{0.02 * k:.2f}" for k in range(1, 21))
    found = read_sweep(_sweep(tmp_path / "sweep", probing))
    assert len(found.trials) == 40
    assert found.measure == PED_ANOVA
    assert sum(found.importance.values()) == pytest.approx(1.0)


def test_without_a_better_measure_ranks_are_correlated():
    trials = [
        ReadTrial(
            number=number,
            state="complete",
            params={"a": number, "b": "x", "c": ("low", "high")[number > 3]},
            cost=float(number) ** 2,
            result={},
        )
        for number in range(8)
    ]
    # Ranks of a are those of the cost: 1. Ranks of c are 2.5 and 6.5: 4 / sqrt(4 * 5.25).
    assert correlations(trials, ["a", "b", "c"]) == pytest.approx(
        {"a": 1 / 1.872872, "c": 0.872872 / 1.872872, "b": 0.0}, abs=1e-5
    )


@pytest.mark.parametrize("content", [b"", b"{}\n", b"[1]\n", b'{"op_code": 77}\n', b"\xff\xfe\n"])
def test_what_is_no_study_is_one_line(tmp_path: Path, content: bytes):
    (tmp_path / "study.log").write_bytes(content)
    with pytest.raises(RunError, match="cannot be read") as caught:
        read_sweep(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_link_in_place_of_a_study_is_refused(tmp_path: Path):
    (tmp_path / "study.log").symlink_to("/etc/passwd")
    with pytest.raises(RunError, match="cannot be read"):
        read_sweep(tmp_path)
