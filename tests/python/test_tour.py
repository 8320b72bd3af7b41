"""The notebook of the tour: every cell runs, in order, and nothing of a run is kept in it."""

import json
import pathlib

import pytest

import kernwright as kw

PATH = pathlib.Path(__file__).resolve().parents[2] / "examples" / "tour.ipynb"
CELLS = json.loads(PATH.read_text())["cells"]
CODE = [cell for cell in CELLS if cell["cell_type"] == "code"]


def test_every_cell_runs_in_order():
    space = {"__name__": "__main__"}
    for number, cell in enumerate(CODE):
        text = "".join(cell["source"])
        try:
            exec(compile(text, f"{PATH.name}, code cell {number}", "exec"), space)
        except Exception as error:
            pytest.fail(f"code cell {number} raised {type(error).__name__}: {error}\n{text}")
    kw.synchronize()


def test_nothing_of_a_run_is_kept():
    assert len(CODE) >= 10
    for cell in CODE:
        assert cell["outputs"] == [] and cell["execution_count"] is None
    assert len({cell["id"] for cell in CELLS}) == len(CELLS)


def test_pages_that_it_names_are_there():
    text = "".join(line for cell in CELLS for line in cell["source"])
    for name in ("docs/arrays.md", "docs/fusion.md", "docs/nn.md", "docs/torch.md"):
        assert name in text and (PATH.parents[1] / name).is_file()
