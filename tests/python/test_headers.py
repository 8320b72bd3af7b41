"""CUDA's headers and its C++ library in kernels, with no include path given."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "sim"))
import corpus
from children import run_child

import kernwright as kw
from kernwright import _core

KERNELS = {
    "cuda_fp16": (
        "#include <cuda_fp16.h>\n"
        "__global__ void k(float* x) { x[0] = __half2float(__hadd(__half(1.5f), __half(2.0f))); }",
        3.5,
    ),
    "cuda_bf16": (
        "#include <cuda_bf16.h>\n"
        "__global__ void k(float* x) { x[0] = __bfloat162float(__nv_bfloat16(3.0f)) + 1; }",
        4,
    ),
    "cuda_fp8": (
        "#include <cuda_fp8.h>\n"
        "__global__ void k(float* x) { x[0] = float(__nv_fp8_e4m3(448.0f)); }",
        448,
    ),
    "cooperative_groups": (
        "#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;\n"
        "__global__ void k(float* x) {\n"
        "  cg::this_thread_block().sync();\n"
        "  if (cg::this_thread_block().thread_rank() == 31) x[0] = cg::tiled_partition<32>("
        "cg::this_thread_block()).num_threads();\n}",
        32,
    ),
    "cuda/std": (
        "#include <cuda/std/cstdint>\n#include <cuda/std/array>\n#include <cuda/std/limits>\n"
        "__global__ void k(float* x) {\n"
        "  cuda::std::array<cuda::std::uint16_t, 2> a{1, 2};\n"
        "  x[0] = a[1] + cuda::std::numeric_limits<signed char>::max();\n}",
        129,
    ),
    "cuda/barrier": (
        "#include <cuda/barrier>\n"
        "__global__ void k(float* x) {\n"
        "  __shared__ cuda::barrier<cuda::thread_scope_block> barrier;\n"
        "  if (threadIdx.x == 0) init(&barrier, blockDim.x);\n"
        "  __syncthreads();\n  barrier.arrive_and_wait();\n  x[0] = 6;\n}",
        6,
    ),
    "cub block": (
        "#include <cub/block/block_reduce.cuh>\n"
        "__global__ void k(float* x) {\n  using Reduce = cub::BlockReduce<float, 32>;\n"
        "  __shared__ typename Reduce::TempStorage storage;\n"
        "  const float sum = Reduce(storage).Sum(float(threadIdx.x));\n"
        "  if (threadIdx.x == 0) x[0] = sum;\n}",
        496,
    ),
    "cub warp": (
        "#include <cub/warp/warp_scan.cuh>\n"
        "__global__ void k(float* x) {\n  using Scan = cub::WarpScan<int>;\n"
        "  __shared__ typename Scan::TempStorage storage;\n  int value = 1;\n"
        "  Scan(storage).InclusiveSum(value, value);\n"
        "  if (threadIdx.x == 31) x[0] = value;\n}",
        32,
    ),
}


@pytest.fixture(scope="module")
def headers():
    status = str(_core.headers_status())
    assert "none" not in status, "this NVRTC has no headers: install 13.3 or newer"
    return status


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_with_it_runs(name, headers, device):
    text, expected = KERNELS[name]
    if package := corpus.lacks_headers_of(text):
        pytest.skip(f"needs the headers of {package}")
    x = kw.zeros(1, np.float32)
    try:
        kw.kernel(text)[1, 32](x)
        assert x.numpy()[0] == expected
    except kw.UnsupportedInstruction:
        # It compiles; whether the simulated device can run it is another question.
        assert device.is_simulated


def test_mma_compiles(headers):
    if not corpus.has_mma_header():
        pytest.skip("needs the headers of nvidia-cuda-crt")
    code = kw.Program(
        "#include <mma.h>\nusing namespace nvcuda;\n"
        "__global__ void k(const half* a, const half* b, float* c) {\n"
        "  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;\n"
        "  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;\n"
        "  wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;\n"
        "  wmma::fill_fragment(fc, 0.0f);\n"
        "  wmma::load_matrix_sync(fa, a, 16);\n  wmma::load_matrix_sync(fb, b, 16);\n"
        "  wmma::mma_sync(fc, fa, fb, fc);\n"
        "  wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);\n}",
        kw.ProgramOptions(arch="sm_80"),
    ).compile("cubin")
    assert code.code.startswith(b"\x7fELF")


@pytest.mark.parametrize("pch", [True, False, "auto"])
def test_every_setting_of_pch_gives_the_same_code(pch, headers):
    text = KERNELS["cuda_fp16"][0]
    options = kw.ProgramOptions(arch="sm_80", pch=pch)
    plain = kw.Program(text, options.replace(pch=False)).compile("cubin").code
    assert kw.Program(text, options).compile("cubin").code == plain


# The heap of precompiled headers takes address space that a limit may not leave.
LITTLE_SPACE = """
import resource, sys
import kernwright as kw
def kernel(i):
    text = "#include <cuda_fp16.h>\\n__global__ void k(int* o) { *o = %d + int(__half(1.f)); }"
    return kw.kernel(text % i, name="k", pch=i == 0 or "auto")
if len(sys.argv) > 1:
    kw.kernel("__global__ void warm_up(int* o) { }", name="warm_up").compile()
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    limit = used + int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
out = kw.zeros(1, "int32")
for i in range(3):
    kernel(i)[1, 1](out)
    assert out.numpy()[0] == i + 1
    assert "int" in str(kernel(i).signature), kernel(i).signature
print(kw.cache.info()["process"]["compiles"])
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of Linux")
def test_a_process_with_little_address_space_spoils_no_cache(headers, tmp_path):
    environment = {"KERNWRIGHT_DEVICE": "sim", "KERNWRIGHT_CACHE_DIR": str(tmp_path)}
    limited = run_child(f"import sys; sys.argv.append({3 << 30})\n" + LITTLE_SPACE, **environment)
    assert limited.code == 0, limited.err
    free = run_child(LITTLE_SPACE, **environment)
    assert free.code == 0, free.err
    assert free.out.split() == ["0"]  # all of them were kept


def test_curand_points_to_our_own(headers):
    with pytest.raises(kw.CompileError, match=r"kernwright/philox\.cuh"):
        # A toolkit may have curand_kernel.h; no machine has this one.
        kw.kernel("#include <curand_other.h>\n__global__ void k() {}").compile()


def test_include_folders_that_are_none_are_named(tmp_path):
    kernel = kw.kernel("__global__ void k() {}", include_dirs=[tmp_path / "none"])
    with pytest.raises(kw.InvalidArgument, match=r"none.*does not exist"):
        kernel.compile()
