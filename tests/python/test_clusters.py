"""Clusters in cooperative grids, as cooperative groups compile them, on a device of 9.0."""

import sys
from pathlib import Path

import pytest
from children import run_child

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "sim"))
import corpus

import kernwright as kw

PROGRAM = """
import numpy as np, kernwright as kw
kernel = kw.kernel('''
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void turn(int* x, int* y) {
    __shared__ int mine;
    auto cluster = cg::this_cluster();
    auto grid = cg::this_grid();
    if (threadIdx.x == 0) mine = blockIdx.x + 100;
    cluster.sync();
    const int* other = cluster.map_shared_rank(&mine, cluster.block_rank() ^ 1);
    if (threadIdx.x == 0) x[blockIdx.x] = *other;
    cluster.sync();
    grid.sync();
    if (threadIdx.x == 0) y[blockIdx.x] = x[gridDim.x - 1 - blockIdx.x];
}''')
x, y = kw.zeros(16, "int32"), kw.zeros(16, "int32")
config = kw.LaunchConfig(grid=16, block=64, cluster=2, cooperative=True)
kernel.launch(config, x, y)
assert x.numpy().tolist() == [(b ^ 1) + 100 for b in range(16)]
assert (y.numpy() == x.numpy()[::-1]).all()
try:
    huge = kw.LaunchConfig(grid=1 << 20, block=64, cluster=2, cooperative=True)
    kernel.launch(huge, x, y)
except kw.LaunchConfigError as error:
    assert "cooperative grid of 1048576 blocks" in str(error), error
else:
    raise AssertionError("a grid that cannot be resident was launched")
print("fine")
"""


@pytest.mark.parametrize("seed", [None, "7"])
def test_a_cooperative_grid_of_clusters(seed):
    if package := corpus.lacks_headers_of(PROGRAM):
        pytest.skip(f"needs the headers of {package}")
    environment = {}
    if kw.current_device().compute_capability < (9, 0):
        environment = {"KERNWRIGHT_DEVICE": "sim", "KERNWRIGHT_SIM_CAPABILITY": "9.0"}
    if seed:
        environment["KERNWRIGHT_SIM_SEED"] = seed
    ended = run_child(PROGRAM, **environment)
    assert (ended.code, ended.out) == (0, "fine\n"), ended.err
