"""The folder of a sweep: what is finished stays, and nothing else gets in."""

import json
from pathlib import Path

import pytest

from stepladder.errors import RunError
from stepladder.simulator.sweep_folder import LOCK, SETTINGS, TRIALS, SweepFolder
from test_files import IRREGULAR


def entries_of(folder: Path, settings: dict[str, object]) -> list[dict[str, object]]:
    store = SweepFolder(folder, settings)
    store.close()
    return store.entries


def test_what_was_appended_is_there_when_it_is_opened_again(tmp_path: Path) -> None:
    store = SweepFolder(tmp_path / "new/sweep", {"a": 1})
    assert store.entries == []
    store.append({"number": 0})
    # On disk at once, before anything is closed.
    assert (store.folder / TRIALS).read_text() == '{"number": 0}\n'
    store.append({"number": 1})
    store.close()
    assert entries_of(store.folder, {"a": 1}) == [{"number": 0}, {"number": 1}]


def test_half_a_line_is_cut_off_and_the_next_one_stands_alone(tmp_path: Path) -> None:
    store = SweepFolder(tmp_path, {"a": 1})
    store.append({"number": 0})
    store.close()
    with (tmp_path / TRIALS).open("a") as file:
        file.write('{"number": 1, "par')
    again = SweepFolder(tmp_path, {"a": 1})
    assert again.entries == [{"number": 0}]
    again.append({"number": 2})
    again.close()
    lines = (tmp_path / TRIALS).read_text().splitlines()
    assert list(map(json.loads, lines)) == [{"number": 0}, {"number": 2}]


def test_other_settings_are_refused_with_the_difference(tmp_path: Path) -> None:
    entries_of(tmp_path, {"num_seeds": 8, "grid": {"probing": [0.1, 0.2]}})
    with pytest.raises(RunError, match="with other settings: num_seeds was 8 and is now 9"):
        SweepFolder(tmp_path, {"num_seeds": 9, "grid": {"probing": [0.1, 0.2]}})
    with pytest.raises(RunError, match=r"grid\.probing\[1\] was 0.2 and is now 0.3"):
        SweepFolder(tmp_path, {"num_seeds": 8, "grid": {"probing": [0.1, 0.3]}})
    # A refusal leaves nothing locked.
    assert entries_of(tmp_path, {"num_seeds": 8, "grid": {"probing": [0.1, 0.2]}}) == []


def test_another_version_is_other_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entries_of(tmp_path, {})
    monkeypatch.setattr("stepladder.__version__", "99.0")
    with pytest.raises(RunError, match=r"version was '.*' and is now '99\.0'"):
        SweepFolder(tmp_path, {})


def test_only_one_at_a_time_may_add_trials(tmp_path: Path) -> None:
    store = SweepFolder(tmp_path, {})
    with pytest.raises(RunError, match="is being written by process"):
        SweepFolder(tmp_path, {})
    store.close()
    assert entries_of(tmp_path, {}) == []


def test_a_folder_with_something_else_in_it_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(RunError, match=r"is not empty and holds no sweep: it has 'thesis\.tex'"):
        SweepFolder(tmp_path, {})
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    with pytest.raises(RunError, match=r"thesis\.tex is a file"):
        SweepFolder(tmp_path / "thesis.tex", {})


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    entries_of(tmp_path, {})
    (tmp_path / TRIALS).write_text('{"number": 0}\nnonsense\n')
    with pytest.raises(RunError, match=r"line 2 of .*trials\.jsonl is damaged"):
        SweepFolder(tmp_path, {})


def test_damaged_settings_are_named(tmp_path: Path) -> None:
    entries_of(tmp_path, {})
    (tmp_path / SETTINGS).write_text("{")
    with pytest.raises(RunError, match=r"sweep\.json is damaged"):
        SweepFolder(tmp_path, {})


@pytest.mark.timeout(30)
@pytest.mark.parametrize("name", [SETTINGS, TRIALS, LOCK])
@pytest.mark.parametrize("kind", IRREGULAR)
def test_what_is_no_file_is_neither_followed_nor_waited_for(
    tmp_path: Path, name: str, kind: str
) -> None:
    folder = tmp_path / "sweep"
    entries_of(folder, {"a": 1})
    (folder / name).unlink()
    IRREGULAR[kind](folder / name)
    before = sorted(folder.iterdir())
    with pytest.raises(RunError, match="it is a") as caught:
        SweepFolder(folder, {"a": 1})
    assert "\n" not in str(caught.value)
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a": NaN}', '{"a": 1, "a": 1}', "1e400"])
def test_a_line_that_is_no_plain_json_is_named(tmp_path: Path, text: str) -> None:
    entries_of(tmp_path, {"a": 1})
    (tmp_path / TRIALS).write_text(f"{text}\n")
    with pytest.raises(RunError, match=r"line 1 of .* is damaged"):
        SweepFolder(tmp_path, {"a": 1})
    (tmp_path / TRIALS).unlink()
    (tmp_path / SETTINGS).write_text(text)
    with pytest.raises(RunError, match="is damaged"):
        SweepFolder(tmp_path, {"a": 1})
