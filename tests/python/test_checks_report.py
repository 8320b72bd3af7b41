"""Reports of kw.checks: the source shown, the numbers of lines, findings left out."""

import json
import re

import pytest

import kernwright as kw

pytestmark = pytest.mark.usefixtures("sim")

MIRROR = """__global__ void mirror(int* x) {
    __shared__ int s[64];
    s[threadIdx.x] = x[threadIdx.x];
    x[threadIdx.x] = s[63 - threadIdx.x];
}"""


def races(kernel, limit=1000):
    with kw.checks("race", limit=limit) as report:
        kernel[1, 64](kw.zeros(64, "int32"))
    return report


def marked(report, style):
    """(line, text) of each highlighted line of the page."""
    rows = re.findall(
        rf"<span class='row {style}'[^>]*><span class=number> *([0-9]+)</span> *"
        r"<span class=code>(.*?)</span>",
        report.to_html(),
    )
    return [(int(number), text.strip()) for number, text in rows]


def assemble(*lines):
    return "\n".join(lines)


def test_a_text_put_together_at_run_time_is_shown():
    report = races(kw.kernel(assemble("__global__ void f(int* x) {", "x[0] = threadIdx.x;", "}")))
    assert report[0].file == "<string>"
    assert marked(report, "at") == [(2, "x[0] = threadIdx.x;")]


def test_of_two_kernels_of_one_name_each_shows_its_own_text():
    texts = [assemble("__global__ void f(int* x) {", f"x[{k}] = threadIdx.x;", "}") for k in (3, 4)]
    with kw.checks("race") as report:
        for kernel in [kw.kernel(text) for text in texts]:
            kernel[1, 64](kw.zeros(64, "int32"))
    assert marked(report, "at") == [(2, "x[3] = threadIdx.x;"), (2, "x[4] = threadIdx.x;")]


def test_a_header_given_as_text_is_shown_beside_the_kernel():
    header = assemble(
        "__device__ inline int get(int* s, int i) {", "    return s[i];  // here", "}"
    )
    text = assemble(
        '#include "access.h"',
        "__global__ void f(int* x) {",
        "    __shared__ int s[64];",
        "    s[threadIdx.x] = threadIdx.x;",
        "    x[threadIdx.x] = get(s, 63 - threadIdx.x);",
        "}",
    )
    report = races(kw.kernel(text, headers={"access.h": header}))
    assert {finding.lines for finding in report} == {(2, 4)}
    lines = {(2, "return s[i];  // here"), (4, "s[threadIdx.x] = threadIdx.x;")}
    assert {*marked(report, "at"), *marked(report, "other")} == lines
    assert "access.h:2" in report.to_html() and "&lt;string&gt;:4" in report.to_html()


def test_both_sides_are_numbered_by_the_file():
    report = races(kw.kernel(MIRROR))
    (first, second) = report
    assert (first.other.line, first.other.file_line) == (second.line, second.file_line)
    assert first.other.file == second.file
    for data in json.loads(report.to_json()):
        assert (
            data["file_line"] - data["line"] == data["other"]["file_line"] - data["other"]["line"]
        )
        assert data["other"]["file_line"] > data["other"]["line"]
    page = report.to_html()
    for line in (first.file_line, second.file_line):
        assert page.count(f"test_checks_report.py:{line}, ") == 2
        assert f"test_checks_report.py:{line} (line" in str(report)


@pytest.mark.parametrize("separator", ["\f", "\x85", "\u2028", "\x1c", "\r"])
def test_only_what_ends_a_line_for_the_compiler_does(separator):
    text = assemble(f"// one{separator}line", "__global__ void f(int* x) {", "x[0] = threadIdx.x;")
    report = races(kw.kernel(text + "\n}"))
    assert marked(report, "at") == [(3, "x[0] = threadIdx.x;")]


def test_lines_of_a_header_on_the_disk_are_the_compilers(tmp_path):
    lines = ["// page\f one", "__device__ void put(int* x) {", "  x[0] = threadIdx.x;", "}", ""]
    (tmp_path / "put.h").write_bytes("\r\n".join(lines).encode())
    text = '#include "put.h"\n__global__ void f(int* x) { put(x); }'
    report = races(kw.kernel(text, include_dirs=[str(tmp_path)]))
    assert marked(report, "at") == [(3, "x[0] = threadIdx.x;")]


def test_a_line_that_was_unrolled_is_one_finding():
    (finding,) = races(
        kw.kernel("""__global__ void f(int* x) {
        #pragma unroll
        for (int k = 0; k < 8; k++)
            x[(threadIdx.x + k) & 63] = threadIdx.x + 64 * k;
    }""")
    )
    assert finding.lines == (4,)
    assert finding.count > 64


def test_what_had_no_room_is_said():
    lines = [f"x[{k}] = threadIdx.x + {k};" for k in range(5)]
    kernel = kw.kernel(assemble("__global__ void f(int* x) {", *lines, "}"))
    every = races(kernel)
    assert len(every) == 5 and every.dropped == 0 and "more times" not in str(every)
    some = races(kernel, limit=2)
    assert len(some) == 2 and some.total == every.total
    assert some.dropped == sum(finding.count for finding in list(every)[2:])
    assert f"2 findings, and {some.dropped} more times" in str(some)
    assert f"<p>{some.dropped} more times" in some.to_html()


def test_without_room_the_error_still_says_that_something_was_found():
    report = races(kw.kernel(MIRROR), limit=0)
    assert report and len(report) == 0
    with pytest.raises(kw.checks.CheckFailed, match=f"0 findings, and {report.total} more times"):
        report.raise_if_any()


def test_kernels_are_named_as_in_cpp():
    kernel = kw.kernel(
        "template <int N, typename T> __global__ void f(T* x) { x[0] = N + threadIdx.x; }",
        "f<64, double>",
    )
    with kw.checks("race") as report:
        kernel[1, 64](kw.zeros(4, "float64"))
    assert "in f<64, double>, block" in str(report)
    assert "f&lt;64, double&gt;, " in report.to_html() and "_Z" not in report.to_html()
    with pytest.raises(kw.DeviceFault, match="in f<64, double>, block"):
        kernel[1, 64](kw.Pointer(64, "float64"))


@pytest.mark.parametrize(("name", "start"), [("r.JSON", "["), ("r.htm", "<!doctype")])
def test_suffixes_are_read_in_either_case(name, start, tmp_path):
    races(kw.kernel(MIRROR)).save(tmp_path / name)
    assert (tmp_path / name).read_text().startswith(start)
