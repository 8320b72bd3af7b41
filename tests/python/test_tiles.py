"""Cooperative groups' tiles of several warps: what agrees in all schedules and what does not."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "sim"))
import corpus

import kernwright as kw

pytestmark = pytest.mark.usefixtures("sim")

TEXT = """#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;
__global__ void tiles(const int* x, int* y) {{
    __shared__ int s[1024];
    auto block = cg::this_thread_block();
    auto tile = cg::tiled_partition<{size}>(block);
    int i = block.thread_rank(), v = x[i], r = 0;
    s[i] = v;
    {body}
    y[i] = r;
}}"""

COLLECTIVES = """tile.sync();
    r = s[i ^ 33];
    r += 3 * cg::reduce(tile, v, cg::plus<int>());
    r += 5 * cg::inclusive_scan(tile, v);
    r += 7 * cg::exclusive_scan(tile, v);
    r += 11 * tile.any(v == 77) + 13 * tile.all(v >= 0);
    tile.sync();
    s[i] = r;
    tile.sync();
    r += 17 * s[i ^ 32];
    tile.sync();
    r += 19 * tile.shfl(v, 45);"""

X = np.arange(1024, dtype=np.int32) * 7919 % 1000


def launches(size, body, threads):
    text = TEXT.format(size=size, body=body)
    if package := corpus.lacks_headers_of(text):
        pytest.skip(f"needs the headers of {package}")
    kernel, x = kw.kernel(text), kw.asarray(X[:threads])

    def run():
        y = kw.zeros(threads, "int32")
        kernel[1, threads](x, y)
        return y

    return run


def expected(size, threads):
    x = X[:threads].astype(np.int64)
    tiles = x.reshape(-1, size)
    sums = tiles.cumsum(axis=1)
    lanes = np.arange(threads)
    r = x[lanes ^ 33] + 3 * np.repeat(sums[:, -1], size)
    r += 5 * sums.ravel() + 7 * (sums - tiles).ravel()
    r += 11 * np.repeat((tiles == 77).any(axis=1), size) + 13
    return r + 17 * r[lanes ^ 32] + 19 * np.repeat(tiles[:, 45], size)


@pytest.mark.parametrize("size", [64, 128, 256, 512])
def test_collectives_agree_in_all_schedules_and_have_no_findings(size):
    run = launches(size, COLLECTIVES, 512)
    assert np.array_equal(run().numpy(), expected(size, 512))
    with kw.checks("init", "race", "sync") as report:
        assert kw.checks.fuzz(run, count=8) is None
    assert not report, str(report)


@pytest.mark.parametrize(
    ("body", "mended"),
    [
        ("r = cg::reduce(tile, v, cg::plus<int>());", "tile.sync();"),
        ("r = tile.shfl(v, 45);", "tile.sync();"),
    ],
)
def test_a_shuffle_right_behind_another_collective_depends_on_the_order_of_lanes(body, mended):
    """So it does on an H100, where the lane that releases or arrives sleeps before it does so: the
    header has no __syncwarp() behind either, and other lanes go on to poll the same word."""
    last = "r += 3 * tile.shfl(v, 2); r += 5 * tile.shfl(v, 44);"
    difference = kw.checks.fuzz(launches(64, body + last, 512), count=30)
    assert difference is not None
    between = last.replace("r +=", f"{mended} r +=")
    assert kw.checks.fuzz(launches(64, body + between, 512), count=30) is None
