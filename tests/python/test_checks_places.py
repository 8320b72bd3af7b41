"""The places of findings: a user's line, in any header, not CUDA's."""

import pathlib

import pytest
from children import run_child

import kernwright as kw

pytestmark = pytest.mark.usefixtures("sim")

HALVES = """#include <cuda_fp16.h>
__global__ void halves(const __half* in, __half* out) {
    __half2 pair = ((const __half2*)in)[threadIdx.x];
    out[threadIdx.x] = pair.x;
}"""

COPY = """#include <cuda_pipeline.h>
__global__ void copy(const int* in, int* out) {
    __shared__ int s[64];
    __pipeline_memcpy_async(&s[threadIdx.x], &in[threadIdx.x + 64], 4);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    out[threadIdx.x] = s[threadIdx.x];
}"""

PUT = """__device__ inline void put(int* x) {
    x[0] = threadIdx.x;
}"""


@pytest.mark.parametrize(("source", "dtype", "line"), [(HALVES, "float16", 3), (COPY, "int32", 4)])
def test_a_fault_in_a_header_of_cuda_is_at_the_line_that_calls_it(source, dtype, line):
    with pytest.raises(kw.DeviceFault) as caught:
        kw.kernel(source)[1, 64](kw.zeros(64, dtype), kw.zeros(64, dtype))
    assert pathlib.Path(caught.value.file).name == "test_checks_places.py"
    assert caught.value.line == line


@pytest.mark.parametrize("name", ["vector_ops.h", "math_utils.cuh", "cuda_ops.h", "sm_tools.h"])
def test_a_header_of_a_project_is_no_header_of_cuda(name, tmp_path):
    folder = tmp_path / "include"
    folder.mkdir()
    (folder / name).write_text(PUT)
    text = f'#include "{name}"\n__global__ void f(int* x) {{ put(x); }}'
    with kw.checks("race") as report:
        kw.kernel(text, include_dirs=[str(folder)])[1, 64](kw.zeros(1, "int32"))
    (finding,) = report
    assert (finding.file, finding.line) == (str(folder / name), 2)


STUCK = """__global__ void stuck(int* x) {
    if (threadIdx.x < 32) {
        asm volatile("bar.sync 1, 64;");
    } else {
        asm volatile("bar.sync 2, 64;");
    }
    x[threadIdx.x] = 1;
}"""


def here():
    """The file and the line on which the text of STUCK begins."""
    path = pathlib.Path(__file__)
    lines = path.read_text().splitlines()
    return path, next(i for i, line in enumerate(lines, 1) if line.startswith("STUCK = "))


def test_who_waits_where_is_told_by_lines_of_the_file_everywhere(tmp_path):
    path, first = here()
    with kw.checks() as report, pytest.raises(kw.DeviceFault) as caught:
        kw.kernel(STUCK)[1, 64](kw.zeros(64, "int32"))
    (finding,) = (one for one in report if "never arrive" in one.message)
    page = tmp_path / "page.html"
    report.save(page)
    for text in (caught.value.report, finding.details, str(report), page.read_text()):
        for warp, line in ((0, 3), (1, 5)):
            place = f"{path}:{first - 1 + line} "
            assert f"warp {warp}: lanes 0xffffffff wait for a barrier at {place}" in (
                text.replace("&#x27;", "'")
            ), text
            assert f"(line {line} of the kernel's text)" in text.replace("&#x27;", "'")


def test_a_finding_that_is_logged_names_the_line_of_the_file(tmp_path):
    program = tmp_path / "app.py"
    program.write_text(
        "import kernwright as kw\n"
        'k = kw.kernel("""\n'
        "__global__ void f(int* x) {\n"
        "    x[0] = threadIdx.x;\n"
        '}""")\n'
        'k[1, 64](kw.zeros(1, "int32"))\n'
        "kw.current_device().synchronize()\n"
    )
    ended = run_child(
        f"import runpy; runpy.run_path({str(program)!r})",
        KERNWRIGHT_DEVICE="sim",
        KERNWRIGHT_CHECKS="race",
    )
    assert ended.code == 0, ended.err
    assert f"{program}:4 (line 3 of the kernel's text)" in ended.err, ended.err
    assert ended.err.count(f"{program}:4 ") == 2  # both accesses


@pytest.mark.parametrize("by_generic_address", [False, True])
def test_an_element_before_the_first_in_shared_memory_has_a_negative_offset(by_generic_address):
    source = """__global__ void f(int* y) {
        __shared__ int s[32];
        s[threadIdx.x] = 1;
        __syncthreads();
        PLACE
        y[threadIdx.x] = p[y[0] - 1];
    }"""
    place = "int* p = y[1] ? y : s;" if by_generic_address else "int* p = s;"
    with pytest.raises(kw.DeviceFault, match="out of bounds") as caught:
        kw.kernel(source.replace("PLACE", place))[1, 32](kw.zeros(32, "int32"))
    assert caught.value.kind == "bounds"
    if not by_generic_address:
        text = str(caught.value)
        assert "in shared memory of 128 bytes: offset -4 is out of bounds" in text
