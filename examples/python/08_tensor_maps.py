"""Tensor copies (TMA) through tensor maps: tiles in and out of shared memory, edges included."""

import os

import numpy as np

os.environ.setdefault("KERNWRIGHT_SIM_CAPABILITY", "9.0")  # first with tensor copies

import kernwright as kw

device = kw.current_device()
if device.compute_capability < (9, 0):
    device = kw.Device("sim")

with device:
    scale_tiles = kw.kernel(r"""
struct alignas(64) CUtensorMap { unsigned long long opaque[16]; };

__device__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

__global__ void scale_tiles(const __grid_constant__ CUtensorMap in,
                            const __grid_constant__ CUtensorMap out, float a) {
    __shared__ alignas(128) float tile[32 * 32];
    __shared__ unsigned long long barrier;
    const unsigned to = shared_address(tile), bar = shared_address(&barrier);
    const int column = blockIdx.x * 32, row = blockIdx.y * 32;
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n"
                     "fence.mbarrier_init.release.cluster;" :: "r"(bar) : "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                     :: "r"(bar), "r"((unsigned)sizeof tile) : "memory");
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile"
                     ".mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                     :: "r"(to), "l"(&in), "r"(column), "r"(row), "r"(bar) : "memory");
    }
    __syncthreads();
    asm volatile("{\n.reg .pred done;\nAGAIN:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], 0;\n"
                 "@!done bra AGAIN;\n}" :: "r"(bar) : "memory");
    for (int i = threadIdx.x; i < 32 * 32; i += blockDim.x) tile[i] *= a;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // before a copy reads them
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group"
                     " [%0, {%1, %2}], [%3];\n"
                     "cp.async.bulk.commit_group;\n"
                     "cp.async.bulk.wait_group 0;"
                     :: "l"(&out), "r"(column), "r"(row), "r"(to) : "memory");
    }
}""")
    x = kw.asarray(np.random.default_rng(0).random((100, 200), np.float32))
    y = kw.zeros_like(x)
    scale_tiles[(7, 4), 128](kw.TensorMap(x, (32, 32)), kw.TensorMap(y, (32, 32)), 3.0)
    np.testing.assert_array_equal(y.numpy(), x.numpy() * np.float32(3))
    print(
        f"scaled {x.shape} in 28 tiles of {kw.TensorMap(x, (32, 32)).box_bytes} bytes on {device}"
    )

    try:
        kw.TensorMap(x, (32, 30))
    except kw.InvalidArgument as error:
        print(error)
    else:
        raise AssertionError("rows of 120 bytes were accepted")
