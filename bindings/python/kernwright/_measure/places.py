"""Where kernels run: the numbers of multiprocessors that a kernel sees."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from kernwright._core import Kernel, Partition

# Each block keeps its multiprocessor busy for a while, so that none gets a second block early.
TEXT = r"""
extern "C" __global__ void places(unsigned* seen, long long clocks) {
    unsigned place;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(place));
    if (threadIdx.x == 0) seen[blockIdx.x] = place;
    const long long start = clock64();
    while (clock64() - start < clocks) { }
}"""
CLOCKS = 200_000  # about 0.1 ms


@functools.lru_cache(maxsize=1)
def kernel() -> Kernel:
    import kernwright as kw

    return kw.kernel(TEXT)


def smids(partition: Partition) -> tuple[int, ...]:
    """The multiprocessors of one launch in the partition, with a block on each at a time."""
    import kernwright as kw

    device = partition.device
    shared = 0 if device.is_simulated else device.attributes.max_shared_memory_per_block_optin
    seen = np.zeros(2 * partition.sms, np.uint32)
    with device, partition.stream():
        places = kw.asarray(seen)
        clocks = 0 if device.is_simulated else CLOCKS
        kernel()[len(seen), 32, None, shared](places, clocks)
        seen = places.numpy()
    return tuple(sorted({int(place) for place in seen}))
