"""kernwright bench without a file: our operations, checked, timed beside peers, kept, compared."""

import contextlib
import json
import math
import sys
import types

import numpy as np
import pytest

import kernwright as kw
from kernwright import nn
from kernwright.bench._table import clock, engine, peers, plan, text
from kernwright.bench._table.operations import OPERATIONS, ordering, reductions
from kernwright.bench._table.work import Expected, Operation, Work, error_of, flat, host, places
from kernwright.cli import main


@pytest.fixture
def folder(tmp_path, monkeypatch, sim):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def bench_json(capsys, *words):
    code = main(["bench", *words, "--json"])
    return code, json.loads(capsys.readouterr().out)


GROUPS = tuple(dict.fromkeys(operation.group for operation in OPERATIONS))


@pytest.mark.parametrize("group", GROUPS)
def test_each_operation_is_right(folder, capsys, group):
    code, found = bench_json(capsys, "--only", group, "--quick", "--save", "run")
    assert code == 0 and found["device"]["is_simulated"]
    names = {row["name"] for row in found["rows"]}
    assert names == {o.name for o in OPERATIONS if o.group == group}
    for row in found["rows"]:
        assert row["status"] == "ok" and row["checked"] and row["off"] <= row["tolerance"], row
        assert row["unit"] == "counts" and row["median"] > 0 and row["launches"] is not None
        assert "gb_per_s" not in row and "peers" not in row
    kept = json.loads((folder / ".kernwright" / "bench" / "run.json").read_text())
    assert kept["rows"] == found["rows"]


def test_the_table_says_that_counts_are_no_times(folder, capsys):
    assert main(["bench", "--only", "copy,scale rows", "--markdown"]) == 0
    said = capsys.readouterr()
    assert "nothing of a GPU" in said.out and "nothing of a GPU" in said.err
    lines = [line for line in said.out.splitlines() if line.startswith("|")]
    assert len(lines) == 4 and len({line.count("|") for line in lines}) == 1
    assert lines[2].startswith("| copy | float32 | 4096 |") and "| right |" in lines[2]
    assert "1/2 copy" in said.err and "2/2 fused scale rows" in said.err


def test_sizes_and_dtypes_are_chosen(folder, capsys):
    _, found = bench_json(capsys, "--only", "add,sum of rows", "--sizes", "2^5,100",
                          "--dtypes", "float64")  # fmt: skip
    shapes = {(row["name"], row["axes"]["shape"], row["axes"]["dtype"]) for row in found["rows"]}
    assert {("add", "32", "float64"), ("add", "100", "float64")} <= shapes
    assert ("sum of rows", "4x8", "float64") in shapes
    assert all(row["status"] == "ok" for row in found["rows"])


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda o: f"{o.name} {o.dtypes[0]}")
def test_shapes_follow_the_number_of_elements(operation):
    for log2 in (12, 20, 30):
        shape = operation.of_size(1 << log2)
        assert all(extent >= 1 for extent in shape)
        size = math.prod(shape) * (128 if operation.name == "rope" else 1)
        size *= 4 if operation.name.startswith("concat") else 1
        assert 0.5 <= size / (1 << log2) <= 1.1
    assert set(operation.dtypes) <= set(operation.takes)


def test_what_is_slower_by_20_percent_fails(folder, capsys, monkeypatch):
    words = ["bench", "--only", "rms_norm", "--dtypes", "float32", "--sizes", "2^14"]
    assert main([*words, "--save", "base"]) == 0
    same = [*words, "--compare", "base", "--fail-on-regression", "10"]
    assert main(same) == 0
    assert "same 1.000x" in capsys.readouterr().out
    real = nn.rms_norm

    def slower(x, weight, eps):
        real(x[: x.shape[0] // 4], weight, eps)
        return real(x, weight, eps)

    monkeypatch.setattr(nn, "rms_norm", slower)
    assert main(same) == 1
    said = capsys.readouterr()
    assert "regression: rms_norm shape=" in said.err and "slower 1.2" in said.out
    assert main([*same[:-1], "40"]) == 0
    assert main([*words, "--compare", "base", "--markdown"]) == 0
    assert "beside base" in capsys.readouterr().out


def test_another_device_is_refused(folder, capsys):
    assert main(["bench", "--only", "copy", "--save", "run.json"]) == 0
    found = json.loads((folder / "run.json").read_text())
    found["device"]["name"] = "NVIDIA H100"
    (folder / "other.json").write_text(json.dumps(found))
    capsys.readouterr()
    for words in (["--only", "copy", "--compare", "other.json"],
                  ["--show", "run.json", "other.json"]):  # fmt: skip
        assert main(["bench", *words]) == 2
        assert "different devices" in capsys.readouterr().err


def test_a_wrong_result_is_told(folder, capsys, monkeypatch):
    monkeypatch.setattr(nn, "swiglu", lambda gate, up: gate * up)
    code, found = bench_json(capsys, "--only", "swiglu")
    (row,) = found["rows"]
    assert code == 1 and row["status"] == "wrong" and "an error of" in row["error"]
    assert "median" not in row
    monkeypatch.setattr(nn, "swiglu", lambda gate, up: gate * float("nan"))
    assert main(["bench", "--only", "swiglu", "--json"]) == 1
    said = capsys.readouterr().out
    assert "an error of inf" in said and "Infinity" not in said

    def fails(gate, up):
        raise kw.InvalidArgument("no gates today")

    monkeypatch.setattr(nn, "swiglu", fails)
    assert main(["bench", "--only", "swiglu,copy", "--markdown"]) == 1
    said = capsys.readouterr()
    assert "error: InvalidArgument: no gates today" in said.out and "| copy |" in said.out


def test_results_that_are_not_written_are_found(sim):
    x = kw.random.normal(64, seed=1)
    good = x.copy()
    calls = []

    def lazy(x):
        calls.append(0)
        result = kw.empty(64)
        if len(calls) == 1:
            result._assign(good)
        return result

    work = Work([x], lazy, 0.0, lambda: [Expected(0, None, host(x))])
    assert engine.checked_error(work) > 0.5 and len(calls) == 2


def test_rows_are_kept_as_they_are_measured(folder, capsys, monkeypatch):
    real = engine.Engine.row
    seen = []

    def row(self, planned):
        if len(seen) == 2:
            raise KeyboardInterrupt
        seen.append(planned)
        return real(self, planned)

    monkeypatch.setattr(engine.Engine, "row", row)
    assert main(["bench", "--only", "elementwise", "--save", "run.json"]) == 1
    assert len(json.loads((folder / "run.json").read_text())["rows"]) == 2


def test_parts_make_one_run(folder, capsys):
    words = ["bench", "--only", "elementwise", "--save", "run"]
    for part in ("1/3", "2/3", "3/3", "3/3"):
        assert main([*words, "--part", part]) == 0
    capsys.readouterr()
    _, found = bench_json(capsys, "--show", "run")
    every = [(r.operation.name, r.axes) for r in plan.planned(["elementwise"])]
    assert sorted(map(str, every)) == sorted(str((r["name"], r["axes"])) for r in found["rows"])
    assert main(["bench", "--show", "run", "--markdown"]) == 0
    assert capsys.readouterr().out.count("| right |") == len(every)
    assert main(["bench", "--show", "run"]) == 0
    assert "where" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--only", "zzz"], "groups: elementwise"),
        (["--only", "copy,,"], "empty value"),
        (["--sizes", "many"], "write 4096 or 2^12"),
        (["--sizes", "2^31"], "from 1 to 2^30"),
        (["--sizes", "0"], "from 1 to 2^30"),
        (["--dtypes", "float7"], "the table has"),
        (["--only", "copy", "--dtypes", "int64"], "no chosen operation takes"),
        (["--peers", "jax"], "there is: torch"),
        (["--part", "2"], "write 1/3"),
        (["--part", "4/3"], "from 1/3"),
        (["--seconds-per-row", "0"], "above 0"),
        (["--axis", "n=4"], "--sizes"),
        (["--show", "nothing"], "there is: none"),
        (["mine.py", "--peers", "torch"], "not of a FILE's"),
    ],
)
def test_wrong_use_is_told(folder, capsys, words, said):
    (folder / "mine.py").write_text("")
    assert main(["bench", *words]) == 2
    got = capsys.readouterr()
    assert said in got.err and got.out == ""


def test_the_list_is_that_of_the_rows(folder, capsys):
    assert main(["bench", "--only", "norms", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(plan.planned(["norms"])) and lines[0].startswith("softmax ")
    assert main(["bench", "--only", "copy", "--list", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row == {"name": "copy", "axes": {"shape": "4096", "dtype": "float32"}}
    for_gpu = plan.planned(simulated=False)
    assert len(for_gpu) > 100
    assert len({(r.operation.name, r.shape, r.dtype) for r in for_gpu}) == len(for_gpu)


def test_parts_are_all_of_the_rows():
    rows = plan.planned(simulated=False)
    parts = [plan.part_of(rows, (i, 4)) for i in (1, 2, 3, 4)]
    assert sum(map(len, parts)) == len(rows) and max(map(len, parts)) - min(map(len, parts)) <= 1


# ---- as on a GPU: on the simulated device its times mean nothing, but all steps run


class Peer:
    """A peer with arrays of ours."""

    version = "1.0"

    def __init__(self, name, function, captured=None):
        self.name = name
        self._function = function
        self.released = 0
        self.captured = captured or (lambda run: run)

    def within(self, stream):
        return contextlib.nullcontext()

    def array(self, array):
        return array

    def function(self, work):
        return self._function

    def release(self):
        self.released += 1


def timed_row(monkeypatch, adapters, work):
    monkeypatch.setattr(peers, "found", lambda names: (adapters, {"cupy": "not installed"}))
    for name, value in (
        ("_BLOCK_BYTES", 4096),
        ("_MOST", 4),
        ("_FEWEST", 3),
        ("_FEWEST_RUNS", 2),
        ("_MOST_RUNS", 4),
    ):
        monkeypatch.setattr(clock, name, value)
    made = engine.Engine(engine.Options(seconds=0.01))
    made.simulated = False
    made.adapters = adapters
    with made.stream:
        made.clock = clock.Clock(made.stream)
        monkeypatch.setattr(engine, "_CEILING", 4096)
        made._measure_copy()
    operation = Operation("mine", "group", lambda shape, dtype: work, [(64,)], (64,), flat)
    return made, made.row(plan.Planned(operation, (64,), "float32"))


def adding(**options):
    x = kw.random.normal(64, seed=1)
    return Work([x], lambda x: x + 1, 2.0 * x.nbytes, lambda: [Expected(0, None, host(x) + 1)],
                tolerance=1e-6, **options)  # fmt: skip


@pytest.mark.parametrize("large", [0, math.inf])
def test_peers_are_measured_beside_ours(sim, monkeypatch, large):
    def dies(x):
        raise RuntimeError("out of paper\nand ink")

    def refused(run):
        raise RuntimeError("no capture")

    adapters = [
        Peer("torch", lambda x: x + 1), Peer("other", lambda x: x + 2), Peer("dying", dies),
        Peer("plain", lambda x: x + 1, refused), Peer("none", None),
    ]  # fmt: skip
    monkeypatch.setattr(clock, "_LARGE", large)
    made, row = timed_row(monkeypatch, adapters, adding())
    assert row["status"] == "ok" and row["unit"] == "ms" and row["median"] > 0, row
    assert row["policy"] == ("cold" if large == 0 else "graph, warm")
    assert len(row["samples"]) >= 2 and row["interval"][0] <= row["median"] <= row["interval"][1]
    assert ("of_copy" in row) == (large == 0)
    assert set(row["peers"]) == {"torch", "other", "dying", "plain"}
    assert row["peers"]["torch"]["ratio"] > 0 and row["peers"]["torch"]["off"] < 1e-6
    assert "computes something else" in row["peers"]["other"]["error"]
    assert row["peers"]["dying"] == {"error": "RuntimeError: out of paper"}
    plain = row["peers"]["plain"]
    assert plain["policy"] == ("cold" if large == 0 else "queued")
    assert ("note" in plain) == (large > 0)
    assert row["best_peer"] in ("torch", "plain") and row["times_best_peer"] > 0
    assert [adapter.released for adapter in adapters] == [1] * 5
    shown = text.cells(row)
    assert row["best_peer"] in shown[7] and shown[8].endswith("x")
    assert "dying: RuntimeError: out of paper" in shown[-1] and "TB/s" in text.line(row)
    said = text.heading({**made.document([row]), "device": {"name": "x", "is_simulated": False}})
    assert "torch 1.0" in said and "no cupy: not installed" in said


def test_a_peer_that_dies_later_leaves_the_rest(sim, monkeypatch):
    calls = []

    def later(x):
        calls.append(0)
        if len(calls) > 5:
            raise RuntimeError("tired")
        return x + 1

    _, row = timed_row(monkeypatch, [Peer("torch", later), Peer("calm", lambda x: x + 1)], adding())
    assert row["status"] == "ok" and row["peers"]["torch"]["error"] == "RuntimeError: tired"
    assert "ratio" not in row["peers"]["torch"] and row["best_peer"] == "calm"


def test_work_in_place_is_checked_on_copies(sim, monkeypatch):
    x = kw.random.normal(64, seed=1)

    def doubles(x):
        x._assign(x * 2)
        return x

    work = Work([x], doubles, 2.0 * x.nbytes, lambda: [Expected(0, None, 2 * host(x))],
                tolerance=1e-6, inplace=True)  # fmt: skip
    monkeypatch.setattr(clock, "copies_wanted", lambda moved, l2: 3)
    _, row = timed_row(monkeypatch, [Peer("torch", doubles)], work)
    assert row["status"] == "ok" and row["off"] < 1e-6 and row["peers"]["torch"]["off"] < 1e-6
    assert row["copies"] == 3


def test_too_little_memory_skips_a_row(sim, monkeypatch):
    def large(x):
        raise kw.OutOfMemory("4 TB are not there")

    _, row = timed_row(monkeypatch, [], Work([kw.ones(4)], large, 1.0))
    assert row["status"] == "skipped" and "4 TB" in row["error"]


def test_absent_peers_are_named(sim, monkeypatch):
    here, missing = peers.found(("torch", "cupy"))
    assert here == [] and set(missing) == {"torch", "cupy"}
    assert "simulated" in missing["torch"]

    def of(**names):
        return types.SimpleNamespace(**names)

    monkeypatch.setattr(kw, "current_device", lambda: of(is_simulated=False))
    cuda = of(is_available=lambda: False)
    monkeypatch.setitem(sys.modules, "torch", of(cuda=cuda, __version__="9"))
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.setitem(sys.modules, "triton", None)
    here, missing = peers.found(peers.NAMES)
    assert here == [] and missing["torch"] == "torch sees no GPU" == missing["compile"]
    assert missing["cupy"].startswith("not installed")
    cuda.is_available = lambda: True
    here, missing = peers.found(peers.NAMES)
    assert [(peer.name, peer.version) for peer in here] == [("torch", "9"), ("compile", "9")]
    assert missing["triton"].startswith("not installed")
    broken = of(cuda=of(Stream=lambda non_blocking: 1 / 0), __version__="1")
    monkeypatch.setitem(sys.modules, "cupy", broken)
    assert peers.found(("cupy",)) == ([], {"cupy": "ZeroDivisionError: division by zero"})


# ---- pieces


def test_errors_are_those_of_norms():
    one = Expected(0, None, np.array([3.0, 4.0]))
    assert error_of([np.array([3.0, 4.0])], [one]) == 0
    assert error_of([np.array([3.0, 4.5])], [one]) == pytest.approx(0.1)
    assert error_of([np.array([3.0, np.nan])], [one]) == math.inf
    assert error_of([np.array([3.0])], [one]) == math.inf
    assert error_of([np.ones(2)], [Expected(0, None, np.zeros(2))]) == math.inf
    assert error_of([np.array([np.inf])], [Expected(0, None, np.array([np.inf]))]) == 0
    assert error_of([], [one]) == 0  # a peer may return less


def test_results_are_looked_at_from_end_to_end():
    for shape in ((1,), (7,), (1 << 20,), (1000, 4096), (3, 1 << 20)):
        found = places(shape)
        assert found[0].start == 0 and found[-1].stop == shape[0]
        assert all(0 <= part.start < part.stop <= shape[0] for part in found)


def test_inputs_take_turns_where_l2_would_hold_them():
    l2 = 50 << 20
    assert clock.copies_wanted(1000, l2) == 1
    assert clock.copies_wanted(4 << 20, l2) * (4 << 20) > 2 * l2
    assert clock.copies_wanted(200 << 20, l2) == 2
    assert clock.copies_wanted(1 << 30, l2) == 1


def test_intervals_are_of_the_median():
    assert clock.interval([1.0]) == (1.0, 1.0)
    low, high = clock.interval([float(i) for i in range(101)])
    assert low < 50 < high and high - low < 25
    assert clock.paired_ratio([1.0, 2.0, 4.0], [2.0, 4.0, 8.0]) == 2
    assert clock.noise([1.0]) == 0 and clock.noise([1.0, 3.0]) > 0.5


@pytest.mark.parametrize("argsort", [False, True])
def test_long_sorts_are_checked_by_counts(sim, monkeypatch, argsort):
    monkeypatch.setattr(reductions, "_CHUNK", 100)
    x = kw.asarray(np.random.default_rng(0).permutation(1000).astype(np.float32) // 2)
    check = ordering._check_long(x, argsort)
    good = kw.argsort(x) if argsort else kw.sort(x)
    assert check((good,)) == 0
    values = good.numpy()
    values[[0, 1]] = values[[-1, -2]]
    assert check((kw.asarray(values),)) == 1
    if not argsort:  # in order, but not these elements
        assert check((kw.sort(x) + 1,)) == 1
    else:
        assert check((kw.asarray(good.numpy()[::-1].copy()),)) == 1
