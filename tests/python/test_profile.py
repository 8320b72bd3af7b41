"""profile(): what is recorded, its sums, the trace, and the log line of each launch."""

import json
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from children import run_child

import kernwright as kw
from kernwright._measure import profile as _profile

SOURCE = r"""
__global__ void work(float* x, int rounds, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = x[i];
    for (int r = 0; r < rounds; r++) v = v * 0.5f + 1.0f;
    x[i] = v;
}
"""
N = 1024


@pytest.fixture(scope="module")
def work():
    return kw.kernel(SOURCE)


def test_launches_copies_and_allocations_are_recorded(work):
    stream, graph = kw.Stream(), kw.Graph()
    y = kw.zeros(N)
    with graph.capture(stream):
        work[4, 256](y, 1, N)
    with kw.profile() as p:
        x = kw.asarray(np.ones(N, np.float32))
        work[4, 256](x, 10, N)
        work[4, 256, stream, 512](x, 1000, N)
        stream.synchronize()
        graph.launch(stream)
        x.numpy()
        x.copy()
    kinds = [a.kind for a in p.activities]
    for kind in ("kernel", "graph", "copy", "allocation", "release"):
        assert kind in kinds
    first, second = (a for a in p.activities if a.kind == "kernel")
    assert first.name == "work" and first.device == kw.current_device()
    assert (first.grid, first.block) == ((4, 1, 1), (256, 1, 1))
    assert (first.stream, second.stream) == (0, stream.handle)
    assert second.bytes == 512
    assert first.device_ms >= 0 and first.begin_ms >= 0 and first.host_ms >= 0
    assert "test_profile.py" in first.place
    up = next(a for a in p.activities if a.name == "host to device")
    assert up.bytes == 4 * N and up.device_ms is not None
    made = next(a for a in p.activities if a.kind == "allocation")
    assert made.address == x.ptr and made.bytes == 4 * N and made.device_ms is None
    assert any("work" in a.name for a in p.activities if a.kind == "graph")


def test_rows_add_up(work):
    x = kw.zeros(N)
    with kw.profile() as p:
        for _ in range(5):
            work[4, 256](x, 10, N)
    (row,) = (row for row in p.rows if row.kind == "kernel")
    times = [a.device_ms for a in p.activities if a.kind == "kernel"]
    assert (row.name, row.count) == ("work", 5)
    assert row.total_ms == pytest.approx(sum(times)) and row.best_ms == min(times)
    assert row.mean_ms == pytest.approx(row.total_ms / 5)
    text = p.summary()
    assert "work" in text and "mean ms" in text and str(p) == text


def test_the_table_without_rich():
    rows = [("kernel", "f", "1"), ("copy", "host to device", "20")]
    text = _profile._plain_table(("kind", "name", "count"), rows)
    assert text.splitlines() == [
        "kind    name            count",
        "kernel  f                   1",
        "copy    host to device     20",
    ]


def test_the_trace_opens(work, tmp_path):
    x = kw.zeros(N)
    with kw.profile() as p:
        work[4, 256](x, 10, N)
        x.numpy()
        del x
    path = tmp_path / "trace.json"
    p.save_trace(path)
    trace = json.loads(path.read_text())
    events = trace["traceEvents"]
    for event in events:
        assert event["ph"] in "XC" and event["ts"] >= 0
        assert event["ph"] == "C" or event["dur"] >= 0
    assert {"host", str(kw.current_device())} <= {event["pid"] for event in events}
    assert sum(event["name"] == "work" for event in events) == 2


def test_other_threads_are_recorded(work):
    def launch():
        work[4, 256](kw.zeros(N), 10, N)

    with kw.profile() as p:
        threads = [threading.Thread(target=launch) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    launches = [a for a in p.activities if a.kind == "kernel"]
    assert len(launches) == 3 and len({a.thread for a in launches}) == 3


def test_captures_are_recorded_without_a_time(work):
    x, graph = kw.zeros(N), kw.Graph()
    with kw.profile() as p, graph.capture():
        work[4, 256](x, 10, N)
    (launch,) = (a for a in p.activities if a.kind == "kernel")
    assert launch.device_ms is None
    assert graph.node_count == 1


def test_misuse(work):
    with kw.profile() as p:
        with pytest.raises(kw.Error, match="already"), kw.profile():
            pass
        with pytest.raises(kw.Error, match="not done"):
            p.activities
    with pytest.raises(kw.Error, match="records once"), p:
        pass
    assert p.activities == [] and p.rows == []
    with pytest.raises(ZeroDivisionError), kw.profile() as broken:
        raise ZeroDivisionError
    assert broken.activities == []
    with kw.profile() as again:
        work[4, 256](kw.zeros(N), 10, N)
    assert [a.kind for a in again.activities].count("kernel") == 1


def test_each_launch_is_explained_in_the_log():
    program = (
        "import kernwright as kw\n"
        f"k = kw.kernel({SOURCE!r})\n"
        "x = kw.zeros(8)\n"
        "k[2, 64, None, 128](x, 1, 8)\n"
        "x.numpy()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"KERNWRIGHT_LOG": "debug"},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    lines = [line for line in done.stderr.splitlines() if "launch work" in line]
    assert len(lines) == 1
    assert "work[(2, 1, 1), (64, 1, 1)]" in lines[0] and "128 threads" in lines[0]
    assert "128 bytes of shared memory" in lines[0] and "<string>:4" in lines[0]


def test_annotations_are_recorded_and_nest():
    @kw.annotate("function")
    def twice():
        with kw.annotate("inside"):
            pass
        return 7

    with kw.profile() as p:
        assert twice() == 7 and twice() == 7
        with pytest.raises(ValueError), kw.annotate("fails"):
            raise ValueError
    names = [a.name for a in p.activities if a.kind == "annotation"]
    assert names == ["inside", "function", "inside", "function", "fails"]
    assert all(a.device is None and a.device_ms is None for a in p.activities)
    assert {row.name: row.count for row in p.rows} == {"inside": 2, "function": 2, "fails": 1}
    assert [e["cat"] for e in p.trace()["traceEvents"]] == ["annotation"] * 5
    with pytest.raises(kw.ArgumentError, match="must be a str, got int"):
        kw.annotate(7)


RANGES = """
import kernwright as kw

kernel = kw.kernel("__global__ void named(float* x) { x[threadIdx.x] = 1; }")
x = kw.zeros(32)
graph = kw.Graph()
with graph.capture():
    kernel[1, 32](x)
with kw.annotate("outer"):
    kernel[1, 32](x)
    graph.launch()
"""


@pytest.mark.skipif("KERNWRIGHT_TEST_BUILD" not in os.environ, reason="needs the build's fakes")
def test_tools_see_ranges(tmp_path):
    log = tmp_path / "log"
    ended = run_child(
        RANGES,
        LD_LIBRARY_PATH=os.path.join(os.environ["KERNWRIGHT_TEST_BUILD"], "tests", "nvtx"),
        FAKE_NVTX_LOG=str(log),
        NVTX_INJECTION64_PATH="some tool",
        KERNWRIGHT_CACHE_DIR=str(tmp_path),
    )
    assert ended.code == 0, ended.err
    lines = [line.strip() for line in log.read_text().splitlines()]
    assert lines[0] == "domain Kernwright"
    assert "begin compile" in lines
    after = lines[lines.index("begin outer") :]
    assert after == ["begin outer", "begin named", "end", "begin graph", "end", "end"]


def test_milliseconds_of_the_simulated_device_say_so(work, sim):
    with kw.profile() as p:
        kw.zeros(4).fill(2)
    assert p.is_simulated
    assert "times of the simulated device" in str(p).splitlines()[-1]
    assert "simulated" in p._repr_html_()
    with kw.profile() as none, kw.annotate("nothing"):
        pass
    assert not none.is_simulated and "simulated" not in str(none)
