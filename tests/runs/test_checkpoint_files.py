"""The files of checkpoints: numbers that are never used twice, and what goes with a checkpoint."""

from pathlib import Path

import pytest

from stepladder.runs.checkpoint_files import (
    age,
    folder_name,
    folder_names,
    is_folder,
    is_unfinished,
    next_file,
    remove_all,
    remove_older,
    unfinished,
)

STEP = "step-000000000007"


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


def test_a_checkpoint_goes_with_all_its_files_and_its_folder(tmp_path: Path) -> None:
    kept = ["b.1.npz", f"{STEP}-2.1.npz", "a.1.txt"]
    for name in ["a.1.npz", "a.7.npz", ".a.8.npz.123.part", f"{STEP}.9.npz", *kept]:
        (tmp_path / name).touch()
    # Somebody of our number has begun to remove one, long ago.
    left = unfinished(tmp_path, STEP).name
    for name in ("a", STEP, f"{STEP}-2", left):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").touch()
    for name in ("a", STEP, "none"):
        remove_all(tmp_path, name)
    # The folder "a" is somebody else's: no checkpoint of that name has one.
    assert names_in(tmp_path) == sorted([*kept, "a", f"{STEP}-2"])


def test_a_step_gets_a_name_that_nothing_has_and_that_is_newer(tmp_path: Path) -> None:
    assert folder_name(tmp_path, 7) == STEP
    (tmp_path / STEP).mkdir()
    (tmp_path / "step-000000000008").mkdir()
    assert folder_name(tmp_path, 7) == f"{STEP}-2"
    (tmp_path / f".{STEP}-11.5.npz.12.part").touch()
    (tmp_path / STEP).rmdir()
    assert folder_name(tmp_path, 7) == f"{STEP}-12"
    assert age(f"{STEP}-12") == (7, 12)
    assert folder_name(tmp_path, 2**62) == f"step-{2**62}"


@pytest.mark.parametrize("name", ["last", "step-7", f"{STEP}-", f"{STEP}.1", f".{STEP}", "step-x"])
def test_other_names_have_no_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    assert age(name) is None
    assert not is_folder(tmp_path / name)


def test_whatever_is_left_of_a_checkpoint_is_found(tmp_path: Path) -> None:
    names = [f"step-00000000000{index}" for index in range(1, 6)]
    (tmp_path / names[0]).mkdir()
    (tmp_path / f".{names[1]}.77.part").mkdir()
    (tmp_path / f"{names[2]}.4.npz").touch()
    (tmp_path / f".{names[3]}-2.4.npz.77.part").touch()
    for other in ("last.1.npz", f"{names[4]}.txt", f"{names[4]}.4.npz.bak", "step-7.1.npz"):
        (tmp_path / other).touch()
    assert folder_names(tmp_path) == {*names[:3], f"{names[3]}-2"}
    assert is_unfinished(tmp_path / f".{names[1]}.77.part")
    assert not is_folder(tmp_path / f".{names[1]}.77.part")


def test_a_link_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / STEP).symlink_to(tmp_path / "elsewhere")
    assert not is_folder(tmp_path / STEP)
    remove_all(tmp_path, STEP)
    assert (tmp_path / "elsewhere").is_dir()
