"""Right kernels with odd blocks, grids and divisions of the work: none is refused."""

import judge_tasks
import pytest

import kernwright as kw

HEAD = "__global__ void affine(const float* x, float* y, int n) {"
INDEX = "int i = blockIdx.x * blockDim.x + threadIdx.x;"


def blocks_of(count):
    return lambda x, y, n: max(1, -(-n // count))


SHAPES = {
    "one_thread_a_block": (
        f"{HEAD} int i = blockIdx.x; if (i < n) y[i] = 2 * x[i] + 1; }}",
        {"grid": blocks_of(1), "block": 1},
    ),
    "a_warp_and_one_thread": (
        f"{HEAD} {INDEX} if (i < n) y[i] = 2 * x[i] + 1; }}",
        {"grid": blocks_of(33), "block": 33},
    ),
    "blocks_of_three_dimensions": (
        f"""{HEAD}
          int t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
          int step = 105 * gridDim.x * gridDim.y;
          for (int i = (blockIdx.x + gridDim.x * blockIdx.y) * 105 + t; i < n; i += step)
            y[i] = 2 * x[i] + 1;
        }}""",
        {"grid": (3, 2), "block": (3, 5, 7)},
    ),
    "producers_and_consumers": (
        f"""{HEAD}
          __shared__ float both[2][32];
          int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
          for (int c = 0; c * 32 < n; ++c) {{
            int i = c * 32 + lane;
            if (warp == 0 && i < n) both[c % 2][lane] = x[i];
            asm volatile("bar.sync %0, 64;" ::"r"(1 + c % 2) : "memory");
            if (warp == 1 && i < n) y[i] = 2 * both[c % 2][lane] + 1;
          }}
        }}""",
        {"grid": 1, "block": 64},
    ),
    "vectors_and_a_tail": (
        f"""{HEAD}
          int i = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
          if (i + 3 < n) {{
            float4 v = *reinterpret_cast<const float4*>(x + i);
            v = make_float4(2 * v.x + 1, 2 * v.y + 1, 2 * v.z + 1, 2 * v.w + 1);
            *reinterpret_cast<float4*>(y + i) = v;
          }} else {{
            for (; i < n; ++i) y[i] = 2 * x[i] + 1;
          }}
        }}""",
        {"grid": blocks_of(1024), "block": 256},
    ),
    "backwards_by_shared_memory": (
        f"""{HEAD}
          extern __shared__ float part[];
          int begin = n - (blockIdx.x + 1) * blockDim.x, i = begin + (int)threadIdx.x;
          if (i >= 0) part[threadIdx.x] = x[i];
          __syncthreads();
          int from = blockDim.x - 1 - threadIdx.x;
          if (begin + from >= 0) y[begin + from] = 2 * part[from] + 1;
        }}""",
        {"grid": blocks_of(96), "block": 96, "shared_bytes": 384},
    ),
    "groups_of_eight": (
        f"""#include <cooperative_groups.h>
        namespace cg = cooperative_groups;
        {HEAD} {INDEX}
          auto group = cg::tiled_partition<8>(cg::this_thread_block());
          float mine = group.shfl(i < n ? x[i] : 0, group.thread_rank());
          if (i < n) y[i] = 2 * mine + 1;
        }}""",
        {"grid": blocks_of(40), "block": 40},
    ),
}


@pytest.fixture(scope="module")
def judge():
    with kw.Judge(2) as made:
        yield made


@pytest.mark.parametrize("name", SHAPES)
def test_a_right_kernel_of_an_odd_shape_is_accepted(judge, name):
    text, options = SHAPES[name]
    verdict = judge.judge(text, judge_tasks.affine(**options), timeout=60)
    assert verdict.accepted, str(verdict)


# The kernel of CUDA's sample threadFenceReduction: the last block adds up the others' sums and sets
# the counter back by a plain write.
LAST_BLOCK = """__device__ unsigned int retired = 0;
__device__ int add_up(int mine) {
  __shared__ int part[256];
  part[threadIdx.x] = mine;
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s /= 2) {
    if (threadIdx.x < s) part[threadIdx.x] += part[threadIdx.x + s];
    __syncthreads();
  }
  return part[0];
}
__global__ void total(const int* x, int* sum, int n) {
  __shared__ bool last;
  __device__ static volatile int parts[64];
  int mine = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
    mine += x[i];
  mine = add_up(mine);
  if (threadIdx.x == 0) {
    parts[blockIdx.x] = mine;
    __threadfence();
    last = atomicInc(&retired, gridDim.x) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;
  mine = add_up(threadIdx.x < gridDim.x ? parts[threadIdx.x] : 0);
  if (threadIdx.x == 0) {
    sum[0] = mine;
    retired = 0;
  }
}"""


def test_the_last_block_may_reset_its_counter(judge):
    verdict = judge.judge(LAST_BLOCK, judge_tasks.TOTAL, timeout=60)
    assert verdict.accepted, str(verdict)
