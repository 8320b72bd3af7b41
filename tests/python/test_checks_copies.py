"""kw.checks on CUDA's ways to copy asynchronously: nothing in right ones, races in wrong ones."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "sim"))
import corpus

import kernwright as kw

pytestmark = pytest.mark.usefixtures("sim")

TILES, THREADS = 8, 128

HEAD = """
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda_pipeline.h>
namespace cg = cooperative_groups;
extern "C" __global__ void staged(const float* x, float* y, int tiles) {
  int i = threadIdx.x;
  float sum = 0;
"""

PIPELINE_OF_A_BLOCK = """
  __shared__ float tile[2][128];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  auto block = cg::this_thread_block();
  auto pipe = cuda::make_pipeline(block, &state);
  for (int f = 0, t = 0; t < tiles; ++t) {
    for (; f < tiles && f < t + 2; ++f) {
      pipe.producer_acquire();
      cuda::memcpy_async(block, tile[f % 2], x + f * 128, sizeof(float) * 128, pipe);
      pipe.producer_commit();
    }
    pipe.consumer_wait();
    sum += tile[t % 2][127 - i];
    pipe.consumer_release();
  }
"""

PIPELINE_OF_A_THREAD = """
  __shared__ float tile[3][128];
  auto pipe = cuda::make_pipeline();
  for (int f = 0; f < 2; ++f) {
    pipe.producer_acquire();
    cuda::memcpy_async(&tile[f][i], x + f * 128 + i, sizeof(float), pipe);
    pipe.producer_commit();
  }
  for (int t = 0; t < tiles; ++t) {
    pipe.producer_acquire();
    if (t + 2 < tiles) {
      cuda::memcpy_async(&tile[(t + 2) % 3][i], x + (t + 2) * 128 + i, sizeof(float), pipe);
    }
    pipe.producer_commit();
    cuda::pipeline_consumer_wait_prior<2>(pipe);
    __syncthreads();
    sum += tile[t % 3][127 - i];
    __syncthreads();
    pipe.consumer_release();
  }
"""

BARRIER = """
  __shared__ alignas(16) float tile[128];
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  if (i == 0) init(&bar, blockDim.x);
  __syncthreads();
  for (int t = 0; t < tiles; ++t) {
    cuda::memcpy_async(&tile[i], x + t * 128 + i, sizeof(float), bar);
    bar.arrive_and_wait();
    sum += tile[127 - i];
    bar.arrive_and_wait();
  }
"""

GROUP = """
  __shared__ alignas(16) float tile[128];
  auto block = cg::this_thread_block();
  for (int t = 0; t < tiles; ++t) {
    cg::memcpy_async(block, tile, x + t * 128, sizeof(float) * 128);
    cg::wait(block);
    sum += tile[127 - i];
    block.sync();
  }
"""

# Eight words, fewer pieces than a warp has lanes.
FEW_PIECES = """
  __shared__ alignas(16) float few[128];
  auto block = cg::this_thread_block();
  auto tile = cg::tiled_partition<32>(block);
  float* mine = few + 32 * tile.meta_group_rank();
  for (int t = 0; t < tiles; ++t) {
    for (int at = 0; at < 32; at += 8) cg::memcpy_async(tile, mine + at, x + t * 128 + at, 32);
    cg::wait(tile);
    sum += mine[i % 32];
    tile.sync();
  }
  sum = 0;
  for (int t = 0; t < tiles; ++t) sum += x[t * 128 + 127 - i];
"""

# As lanes do where there are more of them than pieces: four threads copy each of 32 words.
REPEATED = """
  __shared__ float word[32];
  for (int t = 0; t < tiles; ++t) {
    __pipeline_memcpy_async(&word[i % 32], x + t * 128 + i % 32, 4);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    sum += word[31 - i % 32];
    __syncthreads();
  }
  sum = 0;
  for (int t = 0; t < tiles; ++t) sum += x[t * 128 + 127 - i];
"""

RIGHT = {
    "pipeline_of_a_block": PIPELINE_OF_A_BLOCK,
    "pipeline_of_a_thread": PIPELINE_OF_A_THREAD,
    "barrier": BARRIER,
    "group": GROUP,
    "few_pieces": FEW_PIECES,
    "repeated": REPEATED,
}

WRONG = {
    "no_wait": PIPELINE_OF_A_BLOCK.replace("    pipe.consumer_wait();\n", "    block.sync();\n"),
    "one_stage_too_few": PIPELINE_OF_A_THREAD.replace("wait_prior<2>", "wait_prior<3>"),
    "no_barrier_after_the_wait": PIPELINE_OF_A_THREAD.replace(
        "(pipe);\n    __syncthreads();", "(pipe);"
    ),
    "readers_not_waited_for": BARRIER.replace(
        "    sum += tile[127 - i];\n    bar.arrive_and_wait();", "    sum += tile[127 - i];"
    ),
    "one_of_four_not_waited_for": REPEATED.replace(
        "    __pipeline_wait_prior(0);\n", "    if (i >= 32) __pipeline_wait_prior(0);\n"
    ),
    "other_barrier_in_place_of_the_wait": GROUP.replace("cg::wait(block)", "block.sync()"),
}


def found(body):
    source = HEAD + body + "  y[i] = sum;\n}\n"
    if lacking := corpus.lacks_headers_of(source):
        pytest.skip(f"needs the headers of {lacking}")
    x = np.arange(TILES * THREADS, dtype=np.float32)
    y = kw.zeros(THREADS, "float32")
    with kw.checks() as report:
        kw.kernel(source, name="staged")[1, THREADS](kw.asarray(x), y, TILES)
    return report, y.numpy(), x.reshape(TILES, THREADS).sum(axis=0)[::-1]


@pytest.mark.parametrize("name", RIGHT)
def test_nothing_is_found_in_a_right_one(name):
    report, got, expected = found(RIGHT[name])
    assert not report, str(report)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_one_races(name):
    assert WRONG[name] not in RIGHT.values()
    report, _, _ = found(WRONG[name])
    assert "race" in {finding.kind for finding in report}
    assert any("asynchronous" in f"{f.what} {f.other.what}" for f in report if f.other)


def test_a_copy_to_a_place_that_is_not_aligned_faults_under_checks_too():
    source = r"""
extern "C" __global__ void f(const float* x) {
  __shared__ alignas(16) float tile[8];
  unsigned to = (unsigned)__cvta_generic_to_shared(tile) + OFFSET;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(to), "l"(x) : "memory");
}"""
    for offset in (2, 4, 8, 15):
        with kw.checks(), pytest.raises(kw.DeviceFault) as caught:
            kw.kernel(source, defines={"OFFSET": offset})[1, 1](kw.zeros(8))
        assert caught.value.kind == "alignment"


@pytest.mark.parametrize("read", [0, 4])
def test_a_copy_that_reads_nothing_races_with_no_write_of_its_source(read):
    """Vectors are written over places in their middle; copies of 0 bytes may name any place."""
    source = r"""
extern "C" __global__ void f(float* y) {
  __shared__ float tile[32];
  unsigned to = (unsigned)__cvta_generic_to_shared(tile + threadIdx.x);
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
               :: "r"(to), "l"(y + 4 * threadIdx.x + 2), "r"(READ) : "memory");
  reinterpret_cast<float4*>(y)[threadIdx.x] = float4{1, 2, 3, 4};
}"""
    y = kw.zeros(128)
    with kw.checks() as report:
        kw.kernel(source, defines={"READ": read})[1, 32](y)
    assert {finding.kind for finding in report} == ({"race"} if read else set()), str(report)
    np.testing.assert_array_equal(y.numpy(), np.tile([1, 2, 3, 4], 32))
