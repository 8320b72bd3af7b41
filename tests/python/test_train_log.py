"""kw.train.Log and FiniteCheck: lines, panel, page, rates; the first array that is not finite."""

import contextlib
import importlib
import io
import json
import math
import os
import pty
import re
import sys
import threading
import types
import xml.etree.ElementTree

import numpy as np
import pytest

import kernwright as kw
from kernwright.errors import ArgumentError, InvalidArgument, StoreError
from kernwright.train import _panel

logs = importlib.import_module("kernwright.train._log")
peaks = importlib.import_module("kernwright.train._peak")


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def clock(monkeypatch):
    """Time that passes when the test says so."""
    now = types.SimpleNamespace(value=100.0)
    clock = types.SimpleNamespace(monotonic=lambda: now.value, strftime=logs.time.strftime)
    monkeypatch.setattr(logs, "time", clock)
    return now


def test_lines_of_numbers_texts_and_arrays(tmp_path):
    path = tmp_path / "run.jsonl"
    with kw.train.Log(path, live=False, title="tiny", notes={"seed": 3}) as log:
        row = log(1, loss=kw.full((), 2.5), lr=np.float32(0.5), phase="warm", good=True)
        log(2, loss=math.nan, grad_norm=kw.full(1, math.inf))
    run, first, second = lines(path)
    assert run["run"]["title"] == "tiny" and run["run"]["notes"] == {"seed": 3}
    assert run["run"]["device"] == kw.current_device().name
    assert first == row and first["loss"] == 2.5 and first["lr"] == 0.5
    assert (first["phase"], first["good"], first["step"]) == ("warm", True, 1)
    assert (second["loss"], second["grad_norm"]) == ("nan", "inf")


def test_rates_and_their_part_of_the_peak(tmp_path, clock):
    log = kw.train.Log(tmp_path / "a", live=False, flops_per_token=2e6, peak=1e12)
    clock.value += 3.0
    assert "tokens_per_second" not in log(1, tokens=1000)  # its time began with the program
    clock.value += 2.0
    row = log(11, tokens=500_000)
    assert (row["tokens_per_second"], row["mfu"], row["seconds"]) == (250_000.0, 0.5, 5.0)
    clock.value += 1.0
    assert "mfu" not in log(12)
    clock.value += 4.0
    assert log(13, tokens=1000)["tokens_per_second"] == 250.0
    log.close()


def test_an_unknown_peak_is_said_to_be_unknown(tmp_path, clock, sim):
    log = kw.train.Log(tmp_path / "a.jsonl", page=tmp_path / "a.html", live=False,
                       flops_per_token=1e9)  # fmt: skip
    log(1, tokens=10)
    clock.value += 1.0
    assert log(2, tokens=10)["mfu"] is None
    log.close()
    assert lines(tmp_path / "a.jsonl")[-1]["mfu"] is None
    assert "<span>mfu</span><b>unknown</b>" in (tmp_path / "a.html").read_text()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("NVIDIA H200", 989.4e12), ("NVIDIA H100 80GB HBM3", 989.4e12),
        ("NVIDIA H100 PCIe", 756e12), ("NVIDIA A100-SXM4-80GB", 312e12), ("NVIDIA L4", 121e12),
        ("NVIDIA H200 NVL", None), ("NVIDIA A10", None), ("NVIDIA GeForce GT 710", None),
    ],
)  # fmt: skip
def test_peaks_by_name(monkeypatch, name, expected):
    class Named:
        is_simulated = False

    Named.name = name
    monkeypatch.setattr(peaks.kernwright, "Device", Named)
    assert kw.train.peak_flops(Named()) == expected
    assert (peaks.peak_source(Named()) == "unknown") == (expected is None)


def test_a_log_tells_where_its_peak_is_from(tmp_path, monkeypatch):
    monkeypatch.setattr(logs, "peak_flops", lambda: 5e14)
    monkeypatch.setattr(logs, "peak_source", lambda: "a data sheet")
    given = {"flops_per_token": 1e9}
    for number, (options, source) in enumerate(
        [(given, "a data sheet"), (given | {"peak": 1e12}, "given"), ({}, None)]
    ):
        path = tmp_path / f"{number}.jsonl"
        with kw.train.Log(path, page=tmp_path / "a.html", live=False, **options) as log:
            log(1, tokens=5)
        assert lines(path)[0]["run"]["peak_source"] == source
        told = re.search(r"[\d.]+ Tflop/s \([\w ]+\)|unknown", (tmp_path / "a.html").read_text())
        assert told[0] == {None: "unknown", "given": "1 Tflop/s (given)"}.get(
            source, "500 Tflop/s (a data sheet)"
        )


def test_the_simulated_device_has_no_peak(sim):
    assert kw.train.peak_flops() is None
    with pytest.raises(InvalidArgument, match="no clock"):
        kw.train.peak_flops(measure=True)


def test_a_log_goes_on_behind_a_line_that_was_cut_off(tmp_path):
    path = tmp_path / "run.jsonl"
    with kw.train.Log(path, live=False) as log:
        for step in range(1, 6):
            log(step, loss=float(step))
    with open(path, "ab") as file:
        file.write(b'{"step": 6, "lo')
    with kw.train.Log(path, live=False) as log:  # goes on from a checkpoint of step 3
        log(4, loss=40.0)
    assert [row.get("step") for row in lines(path)] == [None, 1, 2, 3, 4, 5, None, 4]
    kw.train.write_page(path, tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert "loss: 40 at step 4" in text and "at step 5" not in text
    (tmp_path / "cut").write_bytes(b'{"step"')
    kw.train.Log(tmp_path / "cut", live=False).close()
    assert "run" in lines(tmp_path / "cut")[0]


def test_the_page(tmp_path, clock):
    path, page = tmp_path / "run.jsonl", tmp_path / "run.html"
    log = kw.train.Log(path, page=page, live=False, title="a <b> run", notes={"data": "<x>"})
    for step in range(1, 121):
        clock.value += 1.0
        loss = math.nan if step == 60 else 4.0 / step
        log(step, loss=loss, lr=0.1, word="text", tokens=10)
        assert page.exists() == (step > 30)
    log.close()
    text = page.read_text()
    assert "<h1>a &lt;b&gt; run</h1>" in text and "&lt;x&gt;" in text and "http" not in text
    pictures = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    assert len(pictures) == 3  # loss, lr, tokens per second
    for picture in pictures:
        xml.etree.ElementTree.fromstring(picture)
    assert "not finite at 1 step, first at 60" in text
    raw = re.search(r'<polyline points="([^"]*)" class="raw"', pictures[0])[1].split()
    heights = [float(point.split(",")[1]) for point in raw]
    assert len(raw) == 119 and heights == sorted(heights)  # the loss falls


def test_a_page_without_steps(tmp_path):
    kw.train.Log(tmp_path / "a", page=tmp_path / "a.html", live=False).close()
    assert "No step has been logged" in (tmp_path / "a.html").read_text()


def test_many_steps_become_few_points(tmp_path):
    path = tmp_path / "a"
    path.write_text("".join(f'{{"step": {i}, "loss": {i}}}\n' for i in range(5000)))
    kw.train.write_page(path, tmp_path / "a.html")
    raw = re.search(r'points="([^"]*)" class="raw"', (tmp_path / "a.html").read_text())[1]
    assert 900 < len(raw.split()) < 1100


def test_a_file_without_a_line_is_no_log(tmp_path):
    (tmp_path / "a").write_bytes(b"\0" * 40)
    with pytest.raises(StoreError, match="a is no log: it has no whole line"):
        kw.train.write_page(tmp_path / "a", tmp_path / "b")


@pytest.mark.parametrize("line", ["{", "[]", '{"loss": 3}', '{"step": "x"}'])
def test_lines_of_no_log_are_named(tmp_path, line):
    (tmp_path / "a").write_text(f'{{"step": 1}}\n{line}\n{{"step": 2}}\n')
    with pytest.raises(StoreError, match="a, line 2 is no line of a log"):
        kw.train.write_page(tmp_path / "a", tmp_path / "b")


def test_plain_lines():
    out = io.StringIO()
    assert _panel.view_of("tiny", None, out) is None  # no terminal, and nothing was asked for
    plain = _panel._PlainView("tiny", out)
    for step in range(3):
        plain.changed({"step": step, "loss": 2.0 / (step + 1), "mfu": None})
    plain.stop()
    assert out.getvalue().splitlines() == [
        "tiny: step 0, loss 2, mfu unknown", "tiny: step 2, loss 0.66667, mfu unknown",
    ]  # fmt: skip


def test_a_panel_on_a_terminal():
    pytest.importorskip("rich")
    main, other = pty.openpty()
    parts = []

    def read():
        with contextlib.suppress(OSError):  # the other end is closed
            while True:
                parts.append(os.read(main, 1 << 12))

    reader = threading.Thread(target=read)
    reader.start()
    with os.fdopen(other, "w") as terminal:
        view = _panel.view_of("tiny [red]", None, terminal)
        for step in range(1, 4):
            view.changed({"step": step, "loss": 3.0 / step, "tokens_per_second": 544_500.0})
        view.stop()
    reader.join(30)
    os.close(main)
    shown = b"".join(parts).decode()
    assert "tiny [red]" in shown and "544.5 k" in shown and "loss" in shown


def test_without_rich_there_are_plain_lines(monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.table", None)
    assert isinstance(_panel.view_of("x", True, io.StringIO()), _panel._PlainView)


def test_tensorboard(tmp_path, monkeypatch):
    written = []
    writer = types.SimpleNamespace(
        add_scalar=lambda *row: written.append(row), close=lambda: written.append("closed")
    )
    module = types.ModuleType("tensorboardX")
    module.SummaryWriter = lambda folder: written.append(folder) or writer
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    monkeypatch.setitem(sys.modules, "tensorboardX", module)
    with kw.train.Log(tmp_path / "a", live=False, tensorboard=tmp_path / "board") as log:
        log(3, loss=2.0, word="x")
    assert written[:2] == [str(tmp_path / "board"), ("loss", 2.0, 3)] and written[-1] == "closed"
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(ArgumentError, match=r"kernwright\[tensorboard\]"):
        kw.train.Log(tmp_path / "b", live=False, tensorboard=tmp_path / "board")


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda log: log("1"), ArgumentError, "a step is an int"),
        (lambda log: log(4), InvalidArgument, "4 comes after 5"),
        (lambda log: log(6, loss=kw.ones(2)), ArgumentError, "an array of one element"),
        (lambda log: log(6, seconds=3), ArgumentError, "a column of the log itself"),
        (lambda log: log(6, tokens=-1), ArgumentError, "tokens are a number from 0"),
        (lambda log: kw.train.Log("x", peak=0.0), InvalidArgument, "peak is above 0"),
        (lambda log: kw.train.Log("x", flops_per_token="a"), ArgumentError, "flops_per_token"),
        (lambda log: kw.train.FiniteCheck()("a", x=kw.ones(1)), ArgumentError, "step"),
        (lambda log: kw.train.Log("/none/x", live=False), StoreError, "/none/x"),
        (lambda log: kw.train.write_page("/none", "x"), StoreError, "/none"),
    ],
)
def test_wrong_calls(tmp_path, call, error, words):
    with kw.train.Log(tmp_path / "a", live=False) as log:
        log(5)
        with pytest.raises(error, match=words):
            call(log)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
def test_the_first_array_that_is_not_finite(value, dtype):
    model = kw.nn.Sequential(kw.nn.Linear(2, 3, seed=1), kw.nn.Linear(3, 2, seed=2))
    grads = {"a": [kw.ones(4), kw.ones((3, 5), dtype)], "none": kw.zeros(0), "z": kw.ones(2)}
    check = kw.train.FiniteCheck(every=2)
    check(4, loss=kw.ones(()), grads=grads, model=model, tokens=kw.ones(3, "int64"))
    grads["a"][1][1, 2] = value
    grads["z"].fill(math.nan)
    model[1].bias.fill(math.nan)
    check(5, grads=grads)  # every second one alone
    with pytest.raises(kw.train.NotFinite) as caught:
        check(6, loss=kw.ones(()), grads=grads, model=model)
    error = caught.value
    assert (error.step, error.name) == (6, "grads.a.1")
    assert (error.nan, error.inf) == ((1, 0) if math.isnan(value) else (0, 1))
    assert "finite before it: loss, grads.a.0" in str(error)
    assert isinstance(error, FloatingPointError)
    with pytest.raises(kw.train.NotFinite, match=r"step 8: model\.1\.bias has 2 NaN"):
        check(8, model=model)
    check.enabled = False
    check(10, grads=grads)


@pytest.mark.parametrize(
    ("dtype", "value", "counts"),
    [
        ("complex64", complex(0, math.nan), (1, 0)), ("complex64", complex(-math.inf, 1), (0, 1)),
        ("complex128", complex(math.nan, math.inf), (1, 1)), ("float8_e4m3fn", math.nan, (1, 0)),
        ("float8_e5m2", math.inf, (0, 1)), ("float16", math.nan, (1, 0)),
    ],
)  # fmt: skip
def test_complex_and_narrow_numbers_that_are_not_finite(dtype, value, counts):
    check = kw.train.FiniteCheck()
    whole = kw.ones((3, 4), "complex64" if dtype.startswith("complex") else "float32")
    state = {"whole": whole, "x": kw.ones((3, 4)).astype(dtype).mT, "n": kw.ones(2, "int8")}
    check(1, state=state)
    host = np.ones((4, 3), np.complex128 if dtype.startswith("complex") else np.float32)
    host[1, 2] = value
    state["x"] = kw.asarray(host).astype(dtype)[::-1]
    with pytest.raises(kw.train.NotFinite, match="of 12 numbers; finite before") as caught:
        check(2, state=state)
    assert (caught.value.name, caught.value.nan, caught.value.inf) == ("state.x", *counts)
    assert str(caught.value).endswith("state.whole")


def test_large_numbers_are_finite():
    check = kw.train.FiniteCheck()
    check(1, x=kw.full(3, 1e300, "float64"), y=kw.full(3, 3e38))
    with pytest.raises(InvalidArgument, match="every is a number of steps"):
        kw.train.FiniteCheck(every=0)
