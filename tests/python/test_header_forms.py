"""Inline PTX of CUDA's headers, in forms of their own."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from children import run_child

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "sim"))
import corpus

import kernwright as kw

RANK = r"""
#include <cub/block/block_radix_rank.cuh>
constexpr int kThreads = 128, kItems = 4;
__global__ void rank(const unsigned* keys, int* ranks) {
    using Rank = cub::%s;
    __shared__ typename Rank::TempStorage storage;
    unsigned mine[kItems];
    int found[kItems];
    // Warp-striped, as the ranks that match want it.
    const int first = threadIdx.x / 32 * 32 * kItems + threadIdx.x %% 32;
    for (int i = 0; i < kItems; ++i) mine[i] = keys[first + 32 * i];
    Rank(storage).RankKeys(mine, found, cub::BFEDigitExtractor<unsigned>(3, 5));
    for (int i = 0; i < kItems; ++i) ranks[first + 32 * i] = found[i];
}
"""


@pytest.mark.parametrize(
    "kind",
    [
        "BlockRadixRankMatch<kThreads, 5, false>",
        "BlockRadixRankMatchEarlyCounts<kThreads, 5, false, cub::BLOCK_SCAN_WARP_SCANS,"
        " cub::WARP_MATCH_ATOMIC_OR>",
    ],
    ids=["match", "early counts"],
)
def test_cub_ranks_keys_by_matching(kind: str) -> None:
    if package := corpus.lacks_headers_of(RANK):
        pytest.skip(f"needs the headers of {package}")
    keys = np.random.default_rng(4).integers(0, 1 << 20, 512, dtype=np.uint32)
    ranks = kw.zeros(512, dtype="int32")
    kw.kernel(RANK % kind)[1, 128](kw.asarray(keys), ranks)
    expected = np.empty(512, np.int64)
    expected[np.argsort((keys >> 3) & 31, kind="stable")] = np.arange(512)
    np.testing.assert_array_equal(ranks.numpy(), expected)


WIDE = r"""
import kernwright as kw
module = kw.module(r'''
#include <cuda/atomic>
struct alignas(16) Pair { unsigned long long a, b; };
__global__ void plain(unsigned long long* x) {
    Pair seen{0, 0}, old;
    do {
        old = seen;
        seen = atomicCAS((Pair*)x, old, Pair{old.a + 1, old.b + 3});
    } while (seen.a != old.a || seen.b != old.b);
    old = atomicExch((Pair*)x + 1, Pair{1, ~0ull});
    atomicAdd(x + 4, old.a);
    atomicAdd(x + 5, ~old.b);
}
__global__ void reference(unsigned long long* x) {
    cuda::atomic_ref<Pair, cuda::thread_scope_device> cell(*(Pair*)x);
    Pair seen = cell.load();
    while (!cell.compare_exchange_weak(seen, Pair{seen.a + 1, seen.b + 3})) {}
}
''')
x = kw.zeros(6, "uint64")
module["plain"][3, 32](x)
assert x.numpy().tolist() == [96, 288, 1, (1 << 64) - 1, 95, (1 << 64) - 1], x
module["reference"][3, 32](x)
assert x.numpy()[:2].tolist() == [192, 576], x
print("fine")
"""


def test_atomics_of_16_bytes() -> None:
    if package := corpus.lacks_headers_of(WIDE):
        pytest.skip(f"needs the headers of {package}")
    environment = {}
    if kw.current_device().compute_capability < (9, 0):
        environment = {"KERNWRIGHT_DEVICE": "sim", "KERNWRIGHT_SIM_CAPABILITY": "9.0"}
    ended = run_child(WIDE, **environment)
    if "__atomic_longlong2" in ended.err:  # its members have other names there
        pytest.skip("these headers of CCCL (13.0) do not compile their own atomics of 16 bytes")
    assert (ended.code, ended.out) == (0, "fine\n"), ended.err
