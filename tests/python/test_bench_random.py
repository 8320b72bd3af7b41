"""kernwright bench --random: what is drawn, in which layouts, and what the rows say together."""

import json
import math

import numpy as np
import pytest

import kernwright as kw
from kernwright.bench._table import draws, shares
from kernwright.bench._table.layouts import LAYOUTS, laid
from kernwright.bench._table.work import Work
from kernwright.cli import main


@pytest.fixture
def folder(tmp_path, monkeypatch, sim):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def names_of(rows):
    return [(row.operation.name, tuple(row.axes.items())) for row in rows]


def test_a_seed_names_the_draws():
    first = draws.drawn(300, 7, simulated=False)
    assert names_of(first) == names_of(draws.drawn(300, 7, simulated=False))
    assert names_of(first)[:10] != names_of(draws.drawn(10, 8, simulated=False))
    assert names_of(first)[:20] == names_of(draws.drawn(20, 7, simulated=False))
    assert len(set(names_of(first))) == 300
    assert {draws.KIND_OF[row.operation.name] for row in first} == set(draws.NAMES)
    assert {row.layout for row in first} == set(LAYOUTS)
    assert {row.dtype for row in first} == {"bfloat16", "float16", "float32"}


def test_draws_fit_the_device():
    for row in draws.drawn(500, 3, simulated=False):
        size = 4 if row.dtype == "float32" else 2
        assert all(extent >= 1 for extent in row.shape)
        assert row.dtype in row.operation.takes
        if row.operation.name == "matmul":
            m, n, k = row.shape
            assert max(m * n, m * k, n * k) * size <= 1 << 29
            assert 2.0 * m * n * k <= 5e12
        else:
            assert math.prod(row.shape) * size <= 1 << 29
    assert all(math.prod(row.shape) <= 64 << 12 for row in draws.drawn(200, 3, simulated=True))


def test_draws_are_chosen():
    rows = draws.drawn(20, 0, ["products"], ["float16"], simulated=False)
    assert {(row.operation.name, row.dtype) for row in rows} == {("matmul", "float16")}
    rows = draws.drawn(40, 0, ["softmax", "cumsum"], simulated=False)
    assert {row.operation.name for row in rows} == {"softmax", "softmax backward", "cumsum"}
    with pytest.raises(kw.Error, match="kinds: rows, reductions, products, attention"):
        draws.drawn(1, 0, ["fft"], simulated=False)
    with pytest.raises(kw.InvalidArgument, match="no drawn operation has int8"):
        draws.drawn(1, 0, None, ["int8"], simulated=False)
    for count in (0, 100_001):
        with pytest.raises(kw.InvalidArgument, match="draws: from 1"):
            draws.drawn(count, 0, simulated=False)
    with pytest.raises(kw.InvalidArgument, match="different draws were not found"):
        draws.drawn(20_000, 0, ["cumsum"], simulated=True)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_keep_the_values(sim, layout):
    x = kw.random.normal((2, 3, 4, 6), seed=1)
    vector = kw.random.normal(6, seed=2)
    view, weight = laid([x, vector], layout)
    assert np.array_equal(view.numpy(), x.numpy()) and view.shape == x.shape
    assert weight.ptr == vector.ptr
    assert view.is_contiguous == (layout in ("contiguous", "shifted"))
    assert (view.ptr % 16 == 0) == (layout not in ("shifted", "sliced"))


def test_work_is_copied_with_its_layout(sim):
    x = kw.random.normal((4, 6), "bfloat16", seed=1)
    work = Work([x], kw.exp, 1.0)
    work.lay("every other row")
    (copy,) = work.copies()
    assert copy.strides == work.arrays[0].strides != x.strides and copy.ptr != work.arrays[0].ptr
    assert kw.all(copy == x)


def test_random_rows_are_right(folder, capsys):
    words = ["bench", "--random", "14", "--seed", "5", "--save", "run"]
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    kept = json.loads((folder / ".kernwright" / "bench" / "run.json").read_text())
    assert kept["random"] == found["random"]
    assert [found["random"][name] for name in ("draws", "seed", "mark")] == [14, 5, 0.9]
    assert len(found["rows"]) == 14 and all(row["status"] == "ok" for row in found["rows"])
    kinds = found["random"]["kinds"]
    assert kinds["all"]["right"] == kinds["all"]["rows"] == 14
    assert kinds["all"]["ratio"] is None and found["random"]["below"] == []
    assert main(["bench", "--show", "run"]) == 0
    said = capsys.readouterr().out
    assert "no peer ran" in said and "\nall " in said
    assert main(["bench", "--random", "3", "--list"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_parts_of_random_rows_join(folder, capsys):
    for part in ("1/2", "2/2"):
        words = ["--random", "4", "--only", "sum of rows", "--part", part, "--save", "run"]
        assert main(["bench", *words, "--markdown"]) == 0
    assert "| reductions | 2/2 |" in capsys.readouterr().out
    kept = json.loads((folder / ".kernwright" / "bench" / "run.json").read_text())
    assert len(kept["rows"]) == 4 and kept["random"]["kinds"]["all"]["right"] == 4


@pytest.mark.parametrize(
    "words, said",
    [
        (["--seed", "1"], "--seed is of --random"),
        (["--random", "3", "--sizes", "64"], "leave --sizes out"),
        (["--random", "0"], "draws: from 1"),
        (["bench_x.py", "--random", "3"], "not of a FILE"),
    ],
)
def test_wrong_use(folder, capsys, words, said):
    (folder / "bench_x.py").write_text("")
    assert main(["bench", *words]) == 2
    assert said in capsys.readouterr().err


def measured(name, shape, ratio, median=1.0, **more):
    peer = {"median": median * ratio, "interval": [median * ratio] * 2}
    return {"name": name, "axes": {"shape": shape, "dtype": "float32"}, "status": "ok",
            "median": median, "interval": [median, median], "times_best_peer": ratio,
            "best_peer": "torch", "peers": {"torch": peer}, **more}  # fmt: skip


def test_summary_of_ratios_and_shares():
    rows = [measured("softmax", f"{i}x64", 0.5 + i / 100, of_copy=i / 100) for i in range(101)]
    rows.append(measured("matmul", "8x8x8", 2.0, of_copy=5.0, tflop_per_s=1.0))
    rows.append({"name": "cumsum", "axes": {"shape": "8", "dtype": "float32"}, "status": "wrong"})
    found = shares.summary(rows)
    of_rows = found["kinds"]["rows"]
    assert of_rows["ratio"] == {"5": 0.55, "25": 0.75, "50": 1.0, "75": 1.25, "95": 1.45}
    assert of_rows["of_copy"] == {"5": 0.05, "25": 0.25, "50": 0.5, "75": 0.75, "95": 0.95}
    assert found["kinds"]["products"]["of_copy"] is None
    assert found["kinds"]["products"]["geometric_mean"] == 2.0
    assert found["kinds"]["reductions"] == {
        "rows": 1, "right": 0, "compared": 0, "ratio": None, "geometric_mean": None,
        "of_copy": None}  # fmt: skip
    below = [row["ratio"] for row in found["below"]]
    assert below == pytest.approx([0.5 + i / 100 for i in range(40)])
    text = "\n".join(shares.lines(found))
    assert "40 below 0.9:" in text and "0.50x torch  softmax 0x64 float32: " in text
    assert "| 0.50x torch | softmax | 0x64 float32 |" in shares.markdown(found)


def test_reasons():
    def why(name="softmax", shape="8x64", layout=None, **row):
        found = measured(name, shape, row.pop("ratio", 0.5), **row)
        found["axes"].update({} if layout is None else {"layout": layout})
        return shares.reason(found)

    assert why(median=0.002) == "a launch: both take less than 6 us"
    assert why(of_copy=0.92) == "memory: at 0.92 of the rate of a copy"
    assert why(ratio=0.899, interval=[0.9, 1.1]) == "noise: the intervals reach the mark"
    assert why("var of rows").startswith("a variance takes distances from a pivot")
    assert why("layer_norm backward", launches=2).startswith("a second launch adds")
    assert why("layer_norm backward", launches=1) == "not known"
    assert why("attention, causal", shape="20x3000x64").startswith("heads of 64 have half")
    assert why("attention", shape="20x3000x128") == "not known"
    assert why("matmul", shape="8x4608x3584").startswith("blocks of tiles fill a part")
    assert why("matmul", shape="64x4608x3584") == "not known"
    assert why("decode attention", layout="heads inside").startswith("keys of a head lie apart")
    assert why(shape="8x65").startswith("no aligned packs")
    assert why(layout="shifted").startswith("no aligned packs")
    assert why() == why("decode attention") == "not known"


def test_another_layout_is_measured(folder, capsys, monkeypatch):
    """The operation sees the view, and a wrong result of one layout alone is found."""
    seen = []
    real = kw.sum

    def odd(x, axis=None):
        seen.append(x.is_contiguous)
        result = real(x, axis=axis)
        return result if x.is_contiguous else result + 1

    monkeypatch.setattr(kw, "sum", odd)
    words = ["--random", "12", "--only", "sum of columns", "--dtypes", "float32", "--json"]
    assert main(["bench", *words]) == 1
    found = json.loads(capsys.readouterr().out)
    assert set(seen) == {True, False}
    for row in found["rows"]:
        strided = row["axes"].get("layout", "contiguous") not in ("contiguous", "shifted")
        assert row["status"] == ("wrong" if strided else "ok")
