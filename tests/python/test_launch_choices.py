"""Launch numbers of the library: candidates are right, tables are read, measuring writes them."""

import json
import pathlib
import textwrap

import numpy as np
import pytest
from children import run_child

import kernwright as kw
from kernwright import _core
from kernwright._support.choices import planned_by
from kernwright.cli import main

NUMBERS = [
    (index, f"{family}.{name}", candidates)
    for index, (family, name, _, candidates, _) in enumerate(_core._launch_choices())
]
random = np.random.default_rng(3)


def values(*shape):
    return random.standard_normal(shape).astype("float32")


def both(*hosts):
    return [kw.asarray(host) for host in hosts]


def softmax64(x):
    e = np.exp(x.astype(float) - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def add():
    x, y = values(3, 1367), values(3, 1367)
    a, b = both(x, y)
    return kw.add(a, b), x + y


def copy():
    x = values(7, 1500)
    return kw.asarray(x)[::-1, ::3].copy(), x[::-1, ::3]


def cast():
    x = values(9, 1001)
    return kw.astype(kw.asarray(x), "float64"), x.astype(float)


def transpose():
    x = values(68, 132)
    return kw.asarray(x).T.copy(), x.T


def reduce_all():
    x = values(41, 1003) + np.float32(1)  # so that the sum is no small rest of large ones
    return kw.sum(kw.asarray(x)), x.astype(float).sum()


def reduce_rows():
    x = values(3, 40001)
    return kw.sum(kw.asarray(x), axis=1), x.astype(float).sum(1)


def reduce_columns():
    x = values(4001, 5)
    return kw.sum(kw.asarray(x), axis=0), x.astype(float).sum(0)


def softmax():
    outs, wanted = [], []
    for n in (1, 65, 1000, 9001, 20004):
        x = values(2, n)
        outs.append(kw.nn.softmax(kw.asarray(x)).numpy())
        wanted.append(softmax64(x))
    return np.concatenate(outs, 1), np.concatenate(wanted, 1)


def softmax_gradient():
    outs, wanted = [], []
    for n in (65, 1000, 9001, 20004):
        y, dy = softmax64(values(2, n)), values(2, n)
        outs.append(kw.nn.softmax_backward(*both(dy, y.astype("float32"))).numpy())
        wanted.append(y * (dy - (dy * y).sum(-1, keepdims=True)))
    return np.concatenate(outs, 1), np.concatenate(wanted, 1)


def norm():
    outs, wanted = [], []
    for n in (65, 1000, 9001, 20004):
        x, w = values(2, n), values(n)
        outs.append(kw.nn.rms_norm(*both(x, w)).numpy())
        wide = x.astype(float)
        wanted.append(wide / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-6) * w)
    return np.concatenate(outs, 1), np.concatenate(wanted, 1)


def norm_gradient():
    outs, wanted = [], []
    for n in (65, 1000, 9001, 20004):
        x, w, dy = values(3, n), values(n), values(3, n)
        dx, dw = kw.nn.rms_norm_backward(*both(dy, x, w))
        wide = x.astype(float)
        r = 1 / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-6)
        g = dy * w
        outs.append(np.concatenate([dx.numpy(), dw.numpy()[None]]))
        expected = r * g - wide * r**3 * (g * wide).mean(-1, keepdims=True)
        wanted.append(np.concatenate([expected, (dy * wide * r).sum(0)[None]]))
    return np.concatenate(outs, 1), np.concatenate(wanted, 1)


def activation():
    x = values(11, 1003)
    return kw.nn.relu(kw.asarray(x)), np.maximum(x, 0)


def gate():
    g, u = values(3, 1003), values(3, 1003)
    return kw.nn.swiglu(*both(g, u)), g / (1 + np.exp(-g.astype(float))) * u


def entropy():
    n = 30001
    x, ids = values(2, n), np.array([5, 30000])
    hot = np.zeros((2, n))
    hot[[0, 1], ids] = 1
    result = kw.nn.cross_entropy_grad(*both(x, ids))
    return result[1] if isinstance(result, tuple) else result, (softmax64(x) - hot) / 2


def sort():
    outs, wanted = [], []
    for x in (values(2, 4099), values(1, 12301), np.float64(values(1, 4100))):
        outs.append(kw.sort(kw.asarray(x)).numpy().ravel())
        wanted.append(np.sort(x).ravel())
    return np.concatenate(outs), np.concatenate(wanted)


def argsort():
    x = values(2, 12289)
    return kw.argsort(kw.asarray(x)), np.argsort(x, kind="stable").astype(float)


CASES = {
    "elementwise.packs": add,
    "copy.units": copy,
    "cast.packs": cast,
    "transpose.pack": transpose,
    "reduce.all_blocks": reduce_all,
    "reduce.row_blocks": reduce_rows,
    "reduce.column_blocks": reduce_columns,
    "softmax.values": softmax,
    "softmax.kept_threads": softmax,
    "softmax.gradient_values": softmax_gradient,
    "norm.values": norm,
    "norm.gradient_values": norm_gradient,
    "norm.gradient_rows": norm_gradient,
    "activation.packs": activation,
    "gate.packs": gate,
    "cross_entropy.packs": entropy,
    "sort.threads": sort,
    "sort.words": sort,
    "argsort.threads": argsort,
    "argsort.words": argsort,
}


def check(case):
    out, wanted = case()
    out = out if isinstance(out, np.ndarray) else out.numpy()
    scale = np.abs(wanted).max()
    np.testing.assert_allclose(out, wanted, rtol=2e-5, atol=2e-6 * scale)
    assert np.linalg.norm(out - wanted) <= 1e-5 * np.linalg.norm(wanted)


@pytest.mark.parametrize(("index", "key", "candidates"), NUMBERS, ids=[n[1] for n in NUMBERS])
def test_every_candidate_gives_right_results(index, key, candidates):
    for value in candidates:
        with planned_by(_core._PinnedChoices({index: value})):
            with kw.checks("memory", "init", "race", "sync") as report:
                check(CASES[key])
            report.raise_if_any()


def test_a_number_that_is_no_candidate_is_refused():
    with pytest.raises(kw.InvalidArgument, match=r"3 is no candidate of elementwise\.packs"):
        _core._PinnedChoices({0: 3})
    for place in (-1, len(NUMBERS)):
        with pytest.raises(kw.InvalidArgument, match=f"there is no launch choice {place}"):
            _core._PinnedChoices({place: 1})


CHILD = """
import kernwright as kw
kw.nn.softmax(kw.ones((4, 512)))
kw.ones(1 << 19) + kw.ones(1 << 19)
"""


def instances(tmp_path, table, **environment):
    """The kernels that CHILD asks for with that table."""
    path, record = tmp_path / "table.json", tmp_path / "record.jsonl"
    record.unlink(missing_ok=True)
    if table is not None:
        path.write_text(table if isinstance(table, str) else json.dumps(table))
    given = {"KERNWRIGHT_KERNEL_CHOICES": str(path), "KERNWRIGHT_RECORD": str(record)}
    ended = run_child(CHILD, **{**given, **environment})
    assert ended.code == 0, ended.err
    lines = [json.loads(line) for line in record.read_text().splitlines()]
    return [name for line in lines for name in line["names"]], ended.err


def test_tables_name_devices_by_name_or_architecture(tmp_path, device):
    arch = "sm_{}{}".format(*device.compute_capability)

    def of(name, value=4):
        numbers = {"softmax.values": {"short/4": value}, "elementwise.packs": {"short/4": 1}}
        return {"format": 1, "devices": {name: numbers}}

    plain, _ = instances(tmp_path, {"format": 1, "devices": {}})
    softmax = next(name for name in plain if name.startswith("softmax_rows"))
    assert "flat<Add, Float32, Float32, 4, 2," in " ".join(plain)
    for name in (device.name, arch):
        chosen, said = instances(tmp_path, of(name))
        assert softmax not in chosen and any(n.startswith("softmax_rows") for n in chosen)
        assert "flat<Add, Float32, Float32, 4, 1," in " ".join(chosen)
        assert "choices" not in said
    assert instances(tmp_path, of("NVIDIA Nothing"))[0] == plain
    assert softmax in instances(tmp_path, of(arch, 5))[0]  # no candidate
    assert instances(tmp_path, of(arch), KERNWRIGHT_KERNEL_CHOICES="off")[0] == plain


def test_a_table_that_cannot_be_read_is_told_once_and_not_used(tmp_path):
    plain, _ = instances(tmp_path, {"format": 1, "devices": {}})
    for text in ("{", '{"format": 2, "devices": {}}', '{"format": 1, "devices": {"a": 3}}'):
        chosen, said = instances(tmp_path, text)
        assert chosen == plain
        assert said.count("table of kernels' choices") == 2  # the warning, and what is wrong
    chosen, said = instances(tmp_path, None, KERNWRIGHT_KERNEL_CHOICES=str(tmp_path / "none"))
    assert chosen == plain and "cannot be read" in said
    with pytest.raises(kw.InvalidArgument, match="tune-kernels"):
        _core._use_launch_table("[]")


@pytest.fixture
def table(tmp_path):
    yield tmp_path / "folder" / "choices.json"
    _core._use_launch_table(None)


def test_library_measures_and_keeps_what_other_devices_have(table, device):
    table.parent.mkdir()
    other = {"format": 1, "devices": {"GPU": {"softmax.values": {"long/2": 8}}}}
    table.write_text(json.dumps(other))
    rows = kw.tune.library(["softmax", "gate"], tiny=True, path=table, seconds=0.02)
    written = json.loads(table.read_text())
    assert written["devices"]["GPU"] == other["devices"]["GPU"]
    assert {row["number"] for row in rows} == {
        *("softmax.values", "softmax.kept_threads", "softmax.gradient_values", "gate.packs"),
    }
    assert len(rows) == 2 * (3 + 1 + 3 + 1)
    assert {row["class"] for row in rows if row["number"] == "softmax.values"} == {
        f"{extent}/{size}" for extent in ("short", "middle", "long") for size in (2, 4)
    }
    mine = written["devices"][device.name]
    for row in rows:
        assert all(ms >= 0 for ms in row["ms"].values()) and row["now_ms"] >= 0
        if row["value"] is not None:
            assert mine[row["number"]][row["class"]] == row["value"]
    check(softmax)


def test_sorts_are_measured_with_random_numbers():
    rows = kw.tune.library("argsort", dtypes=["float32"], tiny=True, save=False, seconds=0.01)
    assert [row["number"] for row in rows] == ["argsort.threads", "argsort.words"]
    assert all(row["shape"] == [5000] and row["class"] == "short/4" for row in rows)


def test_library_says_what_it_cannot_do(tmp_path, table):
    with pytest.raises(kw.ArgumentError, match="no family 'sofmax'; there are elementwise"):
        kw.tune.library("sofmax")
    table.parent.mkdir()
    table.write_text("{")
    with pytest.raises(kw.InvalidArgument, match="no table"):
        kw.tune.library("gate", tiny=True, path=table, seconds=0.01)
    assert table.read_text() == "{"


def test_the_command_prints_what_changed(table, capsys):
    table.parent.mkdir()
    assert main(["tune-kernels", "cast", "--tiny", "--seconds", "0.01", "--table", str(table)]) == 0
    out = capsys.readouterr().out
    assert "cast.packs short/2" in out and "now" in out and "of 2 changed for" in out
    assert json.loads(table.read_text())["format"] == 1
    dry = pathlib.Path(str(table) + "2")
    options = ["--tiny", "--seconds", "0.01", "--dtype", "float32", "--table", str(dry)]
    assert main(["tune-kernels", "cast", *options, "--dry-run", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 1 and not dry.exists()
    assert main(["tune-kernels", "nothing"]) == 2
    assert "no family" in capsys.readouterr().err


def test_threads_decide_together():
    code = textwrap.dedent("""
        import threading, numpy as np, kernwright as kw
        results = [None] * 8
        def work(i):
            for n in (100, 3000, 9000):
                results[i] = kw.nn.softmax(kw.ones((2, n))).numpy()
        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        [t.start() for t in threads]; [t.join() for t in threads]
        assert all(np.allclose(r, 1 / 9000) for r in results)
    """)
    ended = run_child(code)
    assert ended.code == 0, ended.err
