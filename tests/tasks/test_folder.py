"""FolderSource: what is listed, what is read, and what is refused by name."""

import json
import pickle

import numpy as np
import pytest

from stepladder.errors import ConfigError, TaskError
from stepladder.tasks import FolderSource, Task


def write(root, files):
    for path, text in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return root


@pytest.fixture
def levels(tmp_path):
    return write(
        tmp_path / "levels",
        {
            "stage2/a.txt": "##",
            "stage1/b.json": '{"size": 3}',
            "stage1/a.txt": "#é#",
            "stage1/b.txt": "..",
            ".git/config": "hidden",
            "stage1/.hidden": "hidden",
            ".hidden": "hidden",
        },
    )


def count_words(file):
    return {"words": len(file.read_text().split())}


def test_labels_and_files_are_in_order_of_name(levels):
    source = FolderSource(levels)
    names = [source.name(i) for i in range(source.num_tasks)]
    assert names == ["stage1/a.txt", "stage1/b.json", "stage1/b.txt", "stage2/a.txt"]
    assert source.labels() == ["stage1", "stage2"]
    assert [source.label(i) for i in range(4)] == ["stage1"] * 3 + ["stage2"]
    assert source.label_indices(np.array([3, 0])).tolist() == [1, 0]
    assert source.num_cached == 0


def test_text_becomes_level_and_json_becomes_params(levels):
    source = FolderSource(str(levels))
    assert source.get(0) == Task("stage1/a.txt", "stage1", {"level": "#é#", "path": "stage1/a.txt"})
    assert source.get(1).params == {"size": 3, "path": "stage1/b.json"}


def test_a_pattern_narrows_the_files(levels):
    write(levels, {"README.md": "about", "stage2/c.json": "{}"})
    source = FolderSource(levels, pattern="*.json")
    assert [source.name(i) for i in range(source.num_tasks)] == ["stage1/b.json", "stage2/c.json"]


def test_a_folder_within_a_label_is_the_generator(tmp_path):
    write(tmp_path, {"s/wfc/1.txt": "#", "s/2.txt": ".", "s/astar/3.json": "{}"})
    source = FolderSource(tmp_path)
    tasks = [source.get(i) for i in range(3)]
    assert [task.name for task in tasks] == ["s/2.txt", "s/astar/3.json", "s/wfc/1.txt"]
    assert {task.label for task in tasks} == {"s"}
    assert tasks[0].params == {"level": ".", "path": "s/2.txt"}
    assert tasks[1].params == {"path": "s/astar/3.json", "generator": "astar"}
    assert tasks[2].params == {"level": "#", "path": "s/wfc/1.txt", "generator": "wfc"}


def test_an_own_loader_reads_every_file(levels):
    source = FolderSource(levels, loader=count_words)
    assert source.get(1).params == {"words": 2, "path": "stage1/b.json"}


def test_the_cache_is_bounded_and_spares_reading_again(levels):
    source = FolderSource(levels, cache_size=2)
    first = source.get(0)
    source.get(1)
    (levels / "stage1/a.txt").unlink()
    assert source.get(0) is first
    source.get(2)
    source.get(3)
    assert source.num_cached == 2
    with pytest.raises(TaskError, match=r"stage1/a\.txt cannot be used: .*No such file"):
        source.get(0)


def test_a_pickled_source_leaves_its_cache_behind(levels):
    source = FolderSource(levels, loader=count_words)
    source.get(0)
    twin = pickle.loads(pickle.dumps(source))
    assert (source.num_cached, twin.num_cached) == (1, 0)
    assert twin.get(0) == source.get(0)
    assert twin.fingerprint() == source.fingerprint()


def test_a_relative_root_survives_a_change_of_directory(levels, monkeypatch, tmp_path):
    monkeypatch.chdir(levels.parent)
    source = FolderSource("levels")
    monkeypatch.chdir("/")
    assert source.get(3).params["level"] == "##"


def test_the_fingerprint_follows_names_and_sizes_but_not_the_root(levels):
    before = FolderSource(levels)
    moved = levels.rename(levels.parent / "moved")
    assert FolderSource(moved).fingerprint() == before.fingerprint()
    assert before.describe()["label_counts"] == {"stage1": 3, "stage2": 1}
    write(moved, {"stage2/a.txt": "###"})
    longer = FolderSource(moved).fingerprint()
    (moved / "stage2/a.txt").rename(moved / "stage2/z.txt")
    renamed = FolderSource(moved).fingerprint()
    assert len({before.fingerprint(), longer, renamed}) == 3


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"s/a.txt": "#", "lost.txt": "#"}, r"lost\.txt in .* would have no label"),
        ({f"{i}.txt": "#" for i in range(7)}, r"0\.txt, .*4\.txt and 2 more"),
        ({".hidden/a.txt": "#"}, "has no sub-folder"),
        ({"s/a.txt": "#", "t/.hidden": "#"}, r"/t has no file that matches '\*'"),
        ({"s/a.txt": "#", "s/gen/.hidden": "#"}, "s/gen has no file"),
        ({"s/gen/deep/a.txt": "#"}, "s/gen/deep is too deep"),
    ],
)
def test_folders_without_a_label_or_a_task_are_refused_by_name(tmp_path, files, message):
    with pytest.raises(TaskError, match=message):
        FolderSource(write(tmp_path, files))


def test_a_root_that_is_missing_or_a_file_is_refused(tmp_path):
    with pytest.raises(TaskError, match=r"nowhere cannot be listed: No such file"):
        FolderSource(tmp_path / "nowhere")
    write(tmp_path, {"file": "#"})
    with pytest.raises(TaskError, match=r"file cannot be listed: Not a directory"):
        FolderSource(tmp_path / "file")


def test_a_broken_link_is_refused_rather_than_passed_over(tmp_path):
    write(tmp_path, {"s/a.txt": "#"})
    (tmp_path / "s/b.txt").symlink_to(tmp_path / "nowhere")
    with pytest.raises(TaskError, match=r"s/b\.txt cannot be used: .*No such file"):
        FolderSource(tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.json", b"{", "Expecting property name"),
        ("a.json", b"[1]", "holds a JSON list, not an object"),
        ("a.json", b'{"x": NaN}', "NaN, which is not a JSON number"),
        ("a.json", b'{"path": 1}', "parameter 'path' is one the source itself sets"),
        ("a.json", b"[" * 100_000, "nested deeper"),
        ("a.txt", b"\xff\xfe\xff", "utf-8"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_the_reason(tmp_path, name, content, reason):
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / name).write_bytes(content)
    source = FolderSource(tmp_path)
    with pytest.raises(TaskError, match=rf"s/{name} cannot be used: .*{reason}"):
        source.get(0)
    assert source.num_cached == 0


def test_what_a_loader_returns_must_be_a_mapping(levels):
    source = FolderSource(levels, loader=lambda file: [file.name])  # pyright: ignore
    with pytest.raises(TaskError, match="its loader returned a list"):
        source.get(0)


def test_a_loaders_complaint_is_passed_on(levels):
    def loader(file):
        return json.loads("broken")

    with pytest.raises(TaskError, match=r"stage1/a\.txt cannot be used: Expecting value"):
        FolderSource(levels, loader=loader).get(0)


def test_unknown_ids_and_cache_sizes_are_refused(levels):
    source = FolderSource(levels)
    for method in (source.get, source.name, source.label):
        with pytest.raises(TaskError, match="must lie between 0 and 3; got 4"):
            method(4)
    with pytest.raises(ConfigError, match="cache_size"):
        FolderSource(levels, cache_size=-1)
