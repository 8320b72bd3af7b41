"""kw.checks: the findings of a block, their text, and the end of checking with the block."""

import json
import pathlib
import subprocess
import sys
import threading

import numpy as np
import pytest

import kernwright as kw
from kernwright.checks import CheckFailed

pytestmark = pytest.mark.usefixtures("sim")

TWICE = """__global__ void twice(float* x) {
    x[threadIdx.x] *= 2;
}"""

MIRROR = """__global__ void mirror(float* x) {
    __shared__ float s[64];
    s[threadIdx.x] = x[threadIdx.x];
    x[threadIdx.x] = s[63 - threadIdx.x];
}"""

FIXED = MIRROR.replace("x[threadIdx.x] = s", "__syncthreads();\n    x[threadIdx.x] = s")


@pytest.fixture
def twice():
    return kw.kernel(TWICE)


def test_nothing_is_found_in_a_correct_kernel():
    with kw.checks() as report:
        kw.kernel(FIXED)[1, 64](kw.zeros(64, "float32"))
    assert not report
    assert list(report) == []
    assert str(report) == "no findings\n"
    report.raise_if_any()


def test_fresh_memory_is_not_initialised(twice):
    with kw.checks("init") as report:
        twice[1, 32](kw.empty(32, "float32"))
    (finding,) = report
    assert (finding.kind, finding.line, finding.what) == ("init", 2, "read")
    assert finding.count == 32
    assert finding.space == "global memory"
    assert "128 bytes" in finding.allocation
    assert finding.thread == (0, 0, 0)


def test_what_a_copy_a_fill_or_a_kernel_wrote_is_initialised(twice):
    with kw.checks("init") as report:
        twice[1, 32](kw.zeros(32, "float32"))
        twice[1, 32](kw.asarray(np.ones(32, np.float32)))
        target = kw.empty(32, "float32")
        target[...] = kw.ones(32, "float32")
        twice[1, 32](target)
        other = kw.empty(32, "float32")
        kw.kernel("__global__ void one(float* x) { x[threadIdx.x] = 1; }")[1, 32](other)
        twice[1, 32](other)
    assert not report, str(report)


def test_a_copy_of_unwritten_memory_is_unwritten(twice):
    with kw.checks("init") as report:
        twice[1, 32](kw.empty(32, "float32").copy())
    assert [finding.kind for finding in report] == ["init"]


def test_memory_older_than_the_block_counts_as_written(twice):
    x = kw.empty(32, "float32")
    with kw.checks("init") as report:
        twice[1, 32](x)
    assert not report


def test_a_race_names_both_sides():
    with kw.checks("race") as report:
        kw.kernel(MIRROR)[1, 64](kw.asarray(np.arange(64, dtype=np.float32)))
    assert {finding.kind for finding in report} == {"race"}
    shared = [finding for finding in report if finding.space == "shared memory"]
    assert {finding.lines for finding in shared} == {(3, 4)}
    for finding in shared:
        assert {finding.what, finding.other.what} == {"read", "write"}
        assert finding.thread != finding.other.thread
        assert finding.value.startswith("0x") and len(finding.value) == 10
        assert finding.other.value.startswith("0x")
        assert "__sync" in finding.hint


def test_only_the_checks_that_were_named_are_on():
    with kw.checks("memory") as report:
        kw.kernel(MIRROR)[1, 64](kw.empty(64, "float32"))
    assert not report


def test_an_unknown_word_is_refused():
    with pytest.raises(kw.InvalidArgument, match="raze"):
        kw.checks("raze")


def test_checks_end_with_the_block(twice):
    with kw.checks() as report:
        pass
    twice[1, 32](kw.empty(32, "float32"))
    assert not report


def test_blocks_nest_and_the_inner_one_collects(twice):
    with kw.checks("init") as outer:
        with kw.checks("race") as inner:
            twice[1, 32](kw.empty(32, "float32"))
        twice[1, 32](kw.empty(32, "float32"))
    assert [finding.kind for finding in inner] == ["init"]
    assert [finding.kind for finding in outer] == ["init"]


def test_an_error_is_raised_and_in_the_report(twice):
    with kw.checks() as report:
        with pytest.raises(kw.DeviceFault):
            twice[1, 64](kw.zeros(32, "float32"))
    (finding,) = report
    assert (finding.kind, finding.line) == ("bounds", 2)


def test_equal_findings_are_one_and_the_list_has_a_limit(twice):
    with kw.checks("init", limit=1) as report:
        for _ in range(3):
            twice[1, 32](kw.empty(32, "float32"))
        kw.kernel(MIRROR)[1, 64](kw.empty(64, "float32"))
    assert len(report) == 1
    assert report[0].count == 96
    assert report.total > 96


def test_the_place_is_that_of_the_python_file(twice):
    with kw.checks("init") as report:
        twice[1, 32](kw.empty(32, "float32"))
    (finding,) = report
    lines = pathlib.Path(__file__).read_text().splitlines()
    assert pathlib.Path(finding.file).name == "test_checks.py"
    assert "x[threadIdx.x] *= 2" in lines[finding.file_line - 1]
    assert f"test_checks.py:{finding.file_line}" in str(report)


def test_text_json_and_html(twice, tmp_path):
    with kw.checks("init") as report:
        twice[1, 32](kw.empty(32, "float32"))
    (data,) = json.loads(report.to_json())
    assert data["kind"] == "init" and data["line"] == 2
    page = report.to_html()
    assert "<span class='row at'" in page and "x[threadIdx.x] *= 2" in page
    for name, start in (("r.json", "["), ("r.html", "<!doctype"), ("r.txt", "init:")):
        report.save(tmp_path / name)
        assert (tmp_path / name).read_text().startswith(start)


def test_raise_if_any_carries_the_report(twice):
    with kw.checks("init") as report:
        twice[1, 32](kw.empty(32, "float32"))
    with pytest.raises(CheckFailed, match="nothing has written") as caught:
        report.raise_if_any()
    assert caught.value.report is report


def test_launches_of_other_threads_are_checked(twice):
    def work():
        with kw.Device("sim"):
            twice[1, 32](kw.empty(32, "float32"))

    with kw.checks("init") as report:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [finding.count for finding in report] == [128]


def test_the_variable_turns_checks_on_and_logs(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import kernwright as kw\n"
        f"kw.kernel('''{TWICE}''')[1, 32](kw.empty(32, 'float32'))\n"
        "kw.current_device().synchronize()\n"
    )
    import os

    done = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "KERNWRIGHT_DEVICE": "sim", "KERNWRIGHT_CHECKS": "init,race"},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert "nothing has written" in done.stderr
    assert "script.py" in done.stderr


@pytest.mark.parametrize(
    ("value", "uses"),
    [("x << 8", False), ("x & 0xffffff", False), ("x >> 8", True), ("x | 1", True)],
)
def test_bytes_that_an_operation_drops_are_not_used(value, uses):
    """Nobody wrote the last byte of `x`."""
    kernel = kw.kernel(
        "__global__ void k(const unsigned* p, unsigned* out) {"
        f" unsigned x = p[0]; out[0] = ({value}) == 5u ? 1 : 2; }}"
    )
    with kw.checks("init") as report:
        data = kw.empty(4, "uint8")
        data[:3] = 1
        kernel[1, 1](data.view("uint32"), kw.empty(1, "uint32"))
    assert [finding.kind for finding in report] == ["init"] * uses
