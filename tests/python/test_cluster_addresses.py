"""Addresses in the shared memory of a cluster's blocks: the block's rank is above the offset, also
in a block's own ones, and no field of a descriptor of wgmma may take it in.

Where the simulated device is an older one, this file runs once more in a process of its own, whose
device is one of 9.0.
"""

import numpy as np
import pytest
from hopper import hopper_alone, run_at_9_0, simulated_elsewhere

import kernwright as kw

ADDRESSES = """
template <typename T> __device__ unsigned shared_address(const T& place) {
    return static_cast<unsigned>(__cvta_generic_to_shared(&place));
}
__global__ void look(unsigned* out) {
    extern __shared__ int dynamic[];
    __shared__ int mine;
    unsigned rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    mine = 100 + rank;
    dynamic[0] = 200 + rank;
    asm volatile("barrier.cluster.arrive.aligned;\\nbarrier.cluster.wait.aligned;" ::: "memory");
    unsigned* to = out + 16 * blockIdx.x;
    *to++ = shared_address(mine);
    *to++ = shared_address(dynamic[0]);
    for (unsigned other = 0; other < 4; ++other) {
        unsigned there, whose, value;
        asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                     : "=r"(there) : "r"(shared_address(mine)), "r"(other));
        asm volatile("getctarank.shared::cluster.u32 %0, %1;" : "=r"(whose) : "r"(there));
        asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(there));
        *to++ = there;
        *to++ = 1000 * whose + value;
    }
    unsigned own;
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(own) : "r"(shared_address(mine)));
    *to++ = own;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(own) : "r"(shared_address(dynamic[0])));
    *to++ = own;
    asm volatile("barrier.cluster.arrive.aligned;\\nbarrier.cluster.wait.aligned;" ::: "memory");
}
"""

# Matrices without swizzle: blocks of 8 rows and 16 bytes of k follow each other along k.
MULTIPLY = """
__global__ void __launch_bounds__(128) multiply(const unsigned short* a, const unsigned short* b,
                                                float* out, unsigned mask) {
    __shared__ __align__(1024) unsigned short left[64 * 16], right[8 * 64];
    const auto place = [](int row, int k) {
        return row / 8 * 128 + k / 8 * 64 + row % 8 * 8 + k % 8;
    };
    for (int i = threadIdx.x; i < 64 * 16; i += 128) left[place(i / 16, i % 16)] = a[i];
    for (int i = threadIdx.x; i < 8 * 64; i += 128) right[i] = 0;
    __syncthreads();
    right[place(threadIdx.x / 16, threadIdx.x % 16)] = b[threadIdx.x];
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    const unsigned long long steps = 8ull << 16 | 16ull << 32;
    const auto descriptor = [&](const void* at, unsigned kept) {
        return (static_cast<unsigned>(__cvta_generic_to_shared(at)) & kept) >> 4 | steps;
    };
    float d[4] = {};
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    asm volatile(
        "{.reg .pred p; setp.ne.b32 p, 0, 0;\\n"
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, %4, %5, p, 1, 1, 0, "
        "0;}"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "l"(descriptor(left, 0x3ffff)), "l"(descriptor(right, mask)));
    asm volatile("wgmma.commit_group.sync.aligned;");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    const int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
    float* const to = out + blockIdx.x * 512 + row * 8 + column;
    to[0] = d[0], to[1] = d[1], to[64] = d[2], to[65] = d[3];
}
"""


@simulated_elsewhere
def test_on_a_simulated_device_of_9_0():
    run_at_9_0(__file__)


@hopper_alone
def test_the_rank_is_above_the_offset():
    out = kw.zeros((8, 16), "uint32")
    kw.kernel(ADDRESSES).launch(kw.LaunchConfig(8, 1, shared_bytes=64, cluster=4), out)
    rows = out.numpy()
    offsets = rows[0, :2]
    assert (offsets < 1 << 24).all()
    for block, row in enumerate(rows):
        rank = block % 4
        assert row[:2].tolist() == (offsets + (rank << 24)).tolist()
        assert row[2:10:2].tolist() == [offsets[0] + (other << 24) for other in range(4)]
        assert row[3:10:2].tolist() == [100 + 1001 * other for other in range(4)]
        assert row[10:12].tolist() == [100 + rank, 200 + rank]


@hopper_alone
@pytest.mark.parametrize("cluster", [None, 2])
def test_a_descriptor_leaves_the_rank_out(cluster):
    """With it the second block reads k's second half elsewhere: zeros."""
    random = np.random.default_rng(5)
    a, b = (random.integers(1, 9, (rows, 16)).astype("f4") for rows in (64, 8))
    bits = [kw.asarray((x.view(np.uint32) >> 16).astype(np.uint16)) for x in (a, b)]
    kernel, config = kw.kernel(MULTIPLY), kw.LaunchConfig(2, 128, cluster=cluster)
    right, wrong = a.astype("f8") @ b.T.astype("f8"), a[:, :8].astype("f8") @ b[:, :8].T
    for mask, second in ((0x3FFFF, right), (0xFFFFFFFF, wrong if cluster else right)):
        out = kw.zeros((2, 64, 8))
        kernel.launch(config, *bits, out, mask)
        assert np.array_equal(out.numpy(), np.stack([right, second]))
