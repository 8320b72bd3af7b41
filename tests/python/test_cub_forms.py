"""What CUDA's headers write as inline PTX, in word orders of their own."""

from __future__ import annotations

import numpy as np
import pytest

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
    keys = np.random.default_rng(4).integers(0, 1 << 20, 512, dtype=np.uint32)
    ranks = kw.zeros(512, dtype="int32")
    kw.kernel(RANK % kind)[1, 128](kw.asarray(keys), ranks)
    expected = np.empty(512, np.int64)
    expected[np.argsort((keys >> 3) & 31, kind="stable")] = np.arange(512)
    np.testing.assert_array_equal(ranks.numpy(), expected)
