"""Tutorials: the code of a page and the cells of a notebook run, the latter with fewer steps."""

import nbformat
import pytest
from documents import ROOT, Example
from nbclient import NotebookClient

TUTORIALS = ROOT / "docs" / "tutorials"


@pytest.mark.slow
def test_an_environment_in_30_lines_is_learned(tmp_path):
    example = Example.read(TUTORIALS / "own_environment.md")
    assert example.lines <= 30
    example.commands = [line.replace("--steps 1500", "--steps 300") for line in example.commands]
    done = example.run(tmp_path)
    assert done[-1].returncode == 0, done[-1].stderr
    assert len(done) == 3
    assert "20 held-out resets of gym:dot:Dot-v0" in done[-1].stdout


@pytest.mark.slow
def test_the_notebook_runs_from_the_settings_to_the_learning_curve(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    notebook = nbformat.read(TUTORIALS / "first_training.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "it is kept without outputs"
    for cell in notebook.cells:
        short = cell.source.replace("STEPS = 1_200", "STEPS = 250")
        cell.source = short.replace("demonstrations=5", "demonstrations=1")
    NotebookClient(notebook, timeout=200, resources={"metadata": {"path": str(tmp_path)}}).execute()
    kinds = {kind for cell in notebook.cells for out in cell.get("outputs", ()) for kind in out.get("data", {})}
    assert "image/png" in kinds
    assert (tmp_path / "runs" / "first" / "summary.json").is_file()
