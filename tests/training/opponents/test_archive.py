import io
import json
import os
import shutil
from pathlib import Path

import pytest
from rich.console import Console

from stepladder.errors import ConfigError, RunError, SnapshotError
from stepladder.training.checkpoints.tensor_files import save_policy
from stepladder.training.opponents import files
from stepladder.training.opponents.archive import ARCHIVE_LOCK, LOG, RATINGS, Archive, find_opponent
from stepladder.training.opponents.archive_table import print_archive
from stepladder.training.opponents.entry import AGENT, ENTRY_WEIGHTS
from stepladder.training.opponents.ratings import PairGames
from training.checkpoints.checkpoint_scenes import create, save_steps
from training.opponents.small_agents import same_weights, small_member


def filled(folder: Path, *seeds: int) -> tuple[Archive, list[str]]:
    archive = Archive(folder)
    return archive, [archive.add(small_member(seed, step=seed), origin="run") for seed in seeds]


def test_an_archive_that_is_not_there_yet_is_empty(tmp_path: Path) -> None:
    archive = Archive(tmp_path / "none")
    assert archive.list().entries == ()
    assert archive.rating("weak").num_games == 0
    assert not (tmp_path / "none").exists()


def test_an_agent_comes_back_as_it_was_added(tmp_path: Path) -> None:
    archive, member = Archive(tmp_path / "deep" / "archive"), small_member(3, step=500)
    new_id = archive.add(member, origin="runs/a", tags=["final", "sac"])
    assert new_id.startswith("sac-500-")
    (entry,) = archive.list().entries
    assert (entry.agent_id, entry.origin, entry.step) == (new_id, "runs/a", 500)
    assert entry.tags == ("final", "sac")
    assert entry.description == member.description
    loaded = archive.load(new_id)
    assert same_weights(loaded.weights, dict(member.weights))
    assert loaded.is_archived


def test_the_same_agent_is_added_once_and_another_gets_another_id(tmp_path: Path) -> None:
    archive, (first, again, other) = filled(tmp_path, 1, 1, 2)
    assert first == again != other
    assert len(archive.list().entries) == 2


def test_a_removed_agent_is_gone_and_its_games_stay(tmp_path: Path) -> None:
    archive, (one, two) = filled(tmp_path, 1, 2)
    archive.rate([PairGames.of(one, two, [1])])
    archive.remove(one)
    assert [entry.agent_id for entry in archive.list().entries] == [two]
    assert archive.rating(one).num_won == 1
    with pytest.raises(ConfigError, match=f"no agent '{one}'; it has {two}"):
        archive.remove(one)


@pytest.mark.parametrize("name", ["../elsewhere", "", ".", "a/b", "nobody"])
def test_a_name_that_is_no_id_is_refused(name: str, tmp_path: Path) -> None:
    archive, _ = filled(tmp_path / "archive", 1)
    (tmp_path / "elsewhere").mkdir()
    with pytest.raises(ConfigError, match="has no agent"):
        archive.load(name)


def damage_json(folder: Path) -> None:
    (folder / AGENT).write_text("{")


def take_json_away(folder: Path) -> None:
    (folder / AGENT).unlink()


def write_foreign_json(folder: Path) -> None:
    (folder / AGENT).write_text('{"name": "somebody else\'s"}')


def make_it_newer(folder: Path) -> None:
    document = json.loads((folder / AGENT).read_text())
    (folder / AGENT).write_text(json.dumps({**document, "schema": 2}))


def drop_a_field(folder: Path) -> None:
    document = json.loads((folder / AGENT).read_text())
    (folder / AGENT).write_text(json.dumps({**document, "step": "many"}))


def describe_nobody(folder: Path) -> None:
    document = json.loads((folder / AGENT).read_text())
    (folder / AGENT).write_text(json.dumps({**document, "description": {}}))


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (damage_json, "is damaged"),
        (take_json_away, "cannot be read"),
        (write_foreign_json, "not written by Stepladder"),
        (make_it_newer, "has schema 2"),
        (drop_a_field, "step is 'many'"),
        (describe_nobody, "does not describe an agent"),
    ],
)
def test_a_broken_or_foreign_entry_is_passed_over_with_a_reason(
    damage: object, reason: str, tmp_path: Path
) -> None:
    archive, (one, two) = filled(tmp_path, 1, 2)
    damage(tmp_path / one)  # pyright: ignore[reportCallIssue]
    listing = archive.list()
    assert [entry.agent_id for entry in listing.entries] == [two]
    assert reason in listing.skipped[one]
    with pytest.raises(SnapshotError, match=reason):
        archive.load(one)


def test_foreign_files_folders_and_names_of_baselines_are_passed_over(tmp_path: Path) -> None:
    archive, (one,) = filled(tmp_path, 1)
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / ".hidden").mkdir()
    shutil.copytree(tmp_path / one, tmp_path / "weak")
    shutil.copytree(tmp_path / one, tmp_path / "my favourite")
    shutil.copytree(tmp_path / one, tmp_path / "my_favourite")
    listing = archive.list()
    assert sorted(entry.agent_id for entry in listing.entries) == ["my_favourite", one]
    assert sorted(listing.skipped) == ["my favourite", "notes.txt", "weak"]


def test_damaged_weights_are_refused_before_they_are_played_with(tmp_path: Path) -> None:
    archive, (one,) = filled(tmp_path, 1)
    path = tmp_path / one / ENTRY_WEIGHTS
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(SnapshotError, match="digest is wrong"):
        archive.load(one)


def test_what_killed_writers_left_is_removed_by_the_next(tmp_path: Path) -> None:
    archive, (one,) = filled(tmp_path, 1)
    left = tmp_path / ".sac-1-000000000000.part"
    left.mkdir()
    (left / ENTRY_WEIGHTS).write_bytes(b"half")
    assert [entry.agent_id for entry in archive.list().entries] == [one]
    archive.rate([])
    assert not left.exists()


def test_half_a_line_in_the_log_is_ignored_and_cut_off_by_the_next_writer(tmp_path: Path) -> None:
    archive, log = Archive(tmp_path), tmp_path / LOG
    archive.rate([PairGames.of("weak", "strong", [-1])])
    with log.open("ab") as file:
        file.write(b'{"origin": null, "games": [')
    assert archive.rating("strong").num_won == 1
    archive.rate([PairGames.of("weak", "strong", [-1])])
    assert archive.rating("strong").num_won == 2
    assert len(list(files.read_entries(log, 0))) == 2


def test_lines_without_sense_are_passed_over(tmp_path: Path) -> None:
    archive, log = Archive(tmp_path), tmp_path / LOG
    log.write_bytes(b'nonsense\n\xff\xfe\n[1]\n{"games": 3}\n')
    archive.rate([PairGames.of("weak", "strong", [-1])])
    assert archive.rating("strong").num_won == 1


@pytest.mark.parametrize(
    "content", [None, "", "{", '{"schema": 1}', '{"schema": 1, "read_to": -1}']
)
def test_ratings_are_made_anew_from_the_log_if_they_are_lost(
    content: str | None, tmp_path: Path
) -> None:
    archive = Archive(tmp_path)
    archive.rate([PairGames.of("weak", "strong", [-1, 0, 1])])
    archive.rate([PairGames.of("weak", "strong", [-1])])
    before = archive.ratings().to_json()
    if content is None:
        (tmp_path / RATINGS).unlink()
    else:
        (tmp_path / RATINGS).write_text(content)
    assert archive.ratings().to_json() == before


def test_games_that_were_logged_but_not_rated_are_caught_up_with(tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    archive.rate([PairGames.of("weak", "strong", [-1])])
    rated = (tmp_path / RATINGS).read_bytes()
    archive.rate([PairGames.of("weak", "strong", [-1, -1])])
    after = archive.ratings().to_json()
    # As if the second writer had been killed between its two files.
    (tmp_path / RATINGS).write_bytes(rated)
    assert archive.ratings().to_json() == after
    archive.rate([PairGames.of("weak", "strong", [1])])
    assert archive.rating("strong").num_games == 4


def test_one_who_waits_too_long_for_the_lock_is_told(tmp_path: Path) -> None:
    with (
        files.locked(tmp_path / ARCHIVE_LOCK),
        pytest.raises(RunError, match="locked by another process"),
        files.locked(tmp_path / ARCHIVE_LOCK, patience_s=0.01),
    ):
        pass


def test_a_place_that_cannot_be_an_archive_is_named(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("")
    with pytest.raises(RunError, match=r"archive .*file cannot be used"):
        Archive(path).rate([])


def test_an_agent_is_found_by_id_path_or_file(tmp_path: Path) -> None:
    archive, (one,) = filled(tmp_path / "archive", 1)
    weights = dict(small_member(1, step=1).weights)
    assert find_opponent(one, archive).is_archived
    by_path = find_opponent(os.fspath(tmp_path / "archive" / one))
    assert same_weights(by_path.weights, weights)
    assert not by_path.is_archived
    by_file = find_opponent(os.fspath(tmp_path / "archive" / one / ENTRY_WEIGHTS))
    assert same_weights(by_file.weights, weights)
    save_policy(tmp_path / "mine.safetensors", by_file.description, by_file.weights)
    assert same_weights(find_opponent(str(tmp_path / "mine.safetensors")).weights, weights)


def test_a_run_or_a_checkpoint_is_an_opponent_too(tmp_path: Path) -> None:
    with create(tmp_path / "run") as run:
        older, newer = save_steps(run, 10, 20)
    assert find_opponent(str(run.folder)).weights["actor.0.weight"][0, 0] == 20.0
    assert find_opponent(str(older)).weights["actor.0.weight"][0, 0] == 10.0
    assert find_opponent(str(newer / "weights.safetensors")).name.endswith("weights.safetensors")


def test_what_is_no_agent_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is not a file or folder and no agent in the archive"):
        find_opponent("nobody", Archive(tmp_path))
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(SnapshotError, match=r"notes\.txt"):
        find_opponent(str(tmp_path / "notes.txt"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(SnapshotError, match="empty"):
        find_opponent(str(tmp_path / "empty"))


def test_the_table_has_everybody_the_strongest_first(tmp_path: Path) -> None:
    archive, (one, two) = filled(tmp_path, 1, 2)
    archive.rate([PairGames.of(one, two, [1] * 9), PairGames.of(two, "weak", [1] * 9)])
    (tmp_path / "notes").mkdir()
    written = io.StringIO()
    print_archive(archive, Console(file=written, width=160))
    text = written.getvalue()
    assert text.index(one) < text.index(two) < text.index("weak")
    assert "strong" in text
    assert "skipped: notes" in text
