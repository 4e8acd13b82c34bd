"""The files of checkpoints: numbers that are never used twice, and old versions that go."""

from pathlib import Path

from stepladder.runs.checkpoint_files import next_file, remove_older


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_each_file_gets_a_number_that_no_file_has(tmp_path: Path) -> None:
    assert next_file(tmp_path, "a") == tmp_path / "a.1.npz"
    for name in ("a.1.npz", "b.9.npz", "c.10.npz", "d.npz", "e.77.txt", "f.12.npz.part"):
        (tmp_path / name).touch()
    assert next_file(tmp_path, "a").name == "a.11.npz"
    assert next_file(tmp_path, "new").name == "new.11.npz"


def test_only_older_files_of_the_same_name_are_removed(tmp_path: Path) -> None:
    kept = ["a.3.npz", "b.1.npz", "a.b.1.npz", "a.npz", "a.1.txt", "xa.1.npz", "a+.2.npz", ".a.1"]
    gone = ["a.1.npz", "a.2.npz", ".a.4.npz.123.part"]
    for name in kept + gone:
        (tmp_path / name).touch()
    remove_older(tmp_path / "a.3.npz", "a")
    assert names_in(tmp_path) == sorted(kept)
    remove_older(tmp_path / "none.9.npz", "a+")
    assert names_in(tmp_path) == sorted(set(kept) - {"a+.2.npz"})
