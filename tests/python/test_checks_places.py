"""Where findings say that they are: a user's line, in whatever header it stands, not CUDA's."""

import pathlib

import pytest

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
