"""A matrix product with the hardware of compute capability 9.0: TMA copies, mbarriers, wgmma.

The kernel is kernels_src/gemm/gemm.cu without its general parts; docs/hopper_product.md explains
it line by line. The example runs it, traces one thread of each kind, and then removes one wait
after the other: the simulated device reports each mistake.
"""

import contextlib
import os

import numpy as np

os.environ.setdefault("KERNWRIGHT_SIM_CAPABILITY", "9.0")

import kernwright as kw

SOURCE = r"""
#include <kernwright/mbarrier.cuh>
#include <kernwright/tma.cuh>
#include <kernwright/wgmma.cuh>
using namespace kernwright;

constexpr int kStages = 2, kDepth = 64, kTile = 64;  // 64 x 64 results, 64 of the inner dimension
constexpr int kBytes = kTile * kDepth * 2;           // of one operand of a stage

__global__ void __launch_bounds__(256)
    product(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, float* out,
            int columns, int steps) {
  extern __shared__ __align__(1024) unsigned char tiles[];
  __shared__ Mbarrier full[kStages], empty[kStages];
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) {
      full[i].init(1);
      empty[i].init(1);
    }
    Mbarrier::publish();
  }
  __syncthreads();

  if (threadIdx.x < 128) {  // a warpgroup that copies: one thread of it is enough
    if (threadIdx.x != 0) return;
    for (int step = 0; step < steps; ++step) {
      const int stage = step % kStages;
      const unsigned round = step / kStages % 2;
      unsigned char* const to = tiles + stage * 2 * kBytes;
      empty[stage].wait(round ^ 1);
      full[stage].arrive_expecting(2 * kBytes);
      tma_load(to, a, {step * kDepth, int(blockIdx.y) * kTile, 0, 0}, full[stage]);
      tma_load(to + kBytes, b, {step * kDepth, int(blockIdx.x) * kTile, 0, 0}, full[stage]);
    }
    return;
  }

  float accumulators[32];  // a warpgroup that multiplies: 64 x 64 results in 128 threads
  for (int step = 0; step < steps; ++step) {
    const int stage = step % kStages;
    const unsigned round = step / kStages % 2;
    const unsigned from = shared_address(tiles + stage * 2 * kBytes);
    full[stage].wait(round);
    begin_products();
    for (int k = 0; k < kDepth / 16; ++k) {
      Products<BFloat16, 64, false, false>::add(accumulators, matrix_descriptor(from + k * 32, 0),
                                                matrix_descriptor(from + kBytes + k * 32, 0),
                                                step > 0 || k > 0);
    }
    commit_products();
    wait_for_products<0>();
    named_barrier();
    if (threadIdx.x == 128) empty[stage].arrive();
  }
  settle(accumulators);
  const int thread = threadIdx.x - 128;
  const int row = blockIdx.y * kTile + thread / 32 * 16 + thread % 32 / 4;
  for (int i = 0; i < 32; ++i) {
    const int column = blockIdx.x * kTile + i / 4 * 8 + thread % 4 * 2 + i % 2;
    out[(row + i % 4 / 2 * 8) * columns + column] = accumulators[i];
  }
}
""".replace("named_barrier();", 'asm volatile("bar.sync 1, 128;" ::: "memory");')

ROWS, COLUMNS, INNER = 64, 128, 320


def run(product):
    """Runs the kernel on two matrices; returns its result and the expected one."""
    a, b = (kw.random.Generator(i).normal((rows, INNER), dtype="bfloat16")
            for i, rows in enumerate((ROWS, COLUMNS)))  # fmt: skip
    out = kw.zeros((ROWS, COLUMNS))
    maps = [kw.TensorMap(x.reshape((1, 1, *x.shape)), (1, 1, 64, 64), swizzle="128B")
            for x in (a, b)]  # fmt: skip
    grid, shared = (COLUMNS // 64, ROWS // 64), 2 * 2 * 64 * 64 * 2
    product[grid, 256, None, shared](*maps, out, COLUMNS, INNER // 64)
    kw.synchronize()
    return out, a.numpy().astype(np.float64) @ b.numpy().astype(np.float64).T


def multiply(product):
    out, wanted = run(product)
    off = np.linalg.norm(out.numpy() - wanted) / np.linalg.norm(wanted)
    print(f"{ROWS}x{COLUMNS}x{INNER}: differs by {off:.1e} of its norm from float64")
    assert off < 1e-6


def look_on(product):
    """Runs on the simulated device, which traces threads and always finds these races."""
    for who, thread in (("copies", 0), ("multiplies", 128)):
        with kw.trace(product, block=0, thread=thread, limit=100_000) as trace:
            run(product)
        words = ("mbarrier", "cp.async", "wgmma")
        seen = [".".join(s.instruction.split()[0].split(".")[:3])
                for s in trace.steps if s.instruction.startswith(words)]  # fmt: skip
        print(f"the thread that {who}: {', '.join(dict.fromkeys(seen))}")

    for line in (
        "    full[stage].wait(round);\n",
        "      empty[stage].wait(round ^ 1);\n",
        "    wait_for_products<0>();\n",
    ):
        assert SOURCE.count(line) == 1
        with kw.checks("race", "sync") as report:
            # With barriers out of step the launch never ends; the report says so too.
            with contextlib.suppress(kw.DeviceFault):
                run(kw.kernel(SOURCE.replace(line, "\n")))
        print(f"without {line.strip()}")
        for each in report.findings:
            print(f"  {each.kind}: {each.message}")
        assert any(each.kind == "race" for each in report.findings), line

    with kw.checks() as report:
        run(product)
    assert not report.findings
    print("with all of them there is nothing to report")


if __name__ == "__main__":
    kernel, simulated = kw.kernel(SOURCE), kw.Device("sim")
    own = kw.current_device()
    with own if own.compute_capability[0] == 9 else simulated:
        multiply(kernel)
    with simulated:
        look_on(kernel)
