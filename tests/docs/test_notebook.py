"""The notebook runs from top to bottom, and what is stored in it is what it shows."""

import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "examples/look_at_a_run.ipynb"


def kinds(notebook: nbformat.NotebookNode) -> list[list[list[str]]]:
    """Return what each cell shows: text, HTML, a stream."""
    return [
        [sorted(output.get("data", {output["output_type"]: ""})) for output in cell["outputs"]]
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


@pytest.mark.processes
@pytest.mark.timeout(150)
@pytest.mark.filterwarnings("default")  # of the packages that talk to the kernel
def test_the_notebook_runs_and_learns(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    monkeypatch.setenv("JUPYTER_PREFER_ENV_PATH", "1")
    monkeypatch.setenv("JUPYTER_PATH", str(Path(sys.prefix, "share/jupyter")))
    notebook = nbformat.read(NOTEBOOK, 4)
    stored = kinds(notebook)
    place = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=120, resources=place).execute()
    assert kinds(notebook) == stored
    shown = [str(output) for cell in notebook.cells for output in cell.get("outputs", ())]
    assert "finished, 12,0" in shown[0]
    assert "<svg" in shown[0]
    assert any("short -> middle at episode" in text for text in shown)
    assert (tmp_path / "runs/notebook/run.sqlite").exists()


def test_nothing_of_a_machine_is_stored() -> None:
    text = NOTEBOOK.read_text()
    for word in ("/work", "/home", "/root", "/tmp", "Traceback"):
        assert word not in text
