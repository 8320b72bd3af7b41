"""Slices of kernels for devices of 9.0: a tile for each block, clusters, words that stop."""

import threading

import numpy as np
import pytest
from hopper import hopper_alone, run_at_9_0, simulated_elsewhere

import kernwright as kw
from kernwright import _core
from kernwright.schedule import Scheduler

CLUSTERS = r"""
__device__ unsigned rank() {
    unsigned r;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
    return r;
}
__global__ void ranks(int* x) {
    x[blockIdx.y * gridDim.x + blockIdx.x] = blockIdx.x * 10 + rank() + 1000 * gridDim.x;
}
"""


# Rows, columns, stages, warpgroups, whether they take turns, blocks of a cluster: blocks that deal
# out tiles among them, clusters, and warpgroups that take turns.
GROUPED = [(256, 128, 3, 2, False, 1), (128, 64, 3, 2, False, 2), (128, 192, 4, 2, True, 1)]


def normal(*shape, dtype="bfloat16"):
    values = np.random.default_rng(3).standard_normal(shape, np.float32)
    return kw.asarray(values).astype(dtype)


def cut_like_whole(call, max_blocks=1):
    """The counts of `call` in slices, with the result of the whole in all bits."""
    whole = call().numpy()
    with kw.slices(max_blocks, strict=True) as cut:
        pieces = call().numpy()
    assert pieces.tobytes() == whole.tobytes()
    return cut


@hopper_alone
@pytest.mark.parametrize("rows", [300, 1200])
def test_each_block_of_a_product_has_one_tile(rows):
    a, b = normal(rows, 64), normal(64, 1104)
    cut = cut_like_whole(lambda: a @ b)
    assert cut.queued > cut.launches == 1


@hopper_alone
def test_a_persistent_product_of_best_effort_leaves_room_for_small_kernels():
    a, b, x = normal(2400, 32), normal(32, 2304), kw.ones(32)
    small = kw.kernel("__global__ void add(float* x) { x[threadIdx.x] += 1; }")
    whole = (a @ b).numpy()
    with Scheduler() as scheduler:
        for turn in range(3):
            task = scheduler.submit(kw.matmul, a, b, qos="best_effort")
            between = scheduler.submit(small[1, 32], x)
            between.result()
            assert between.stats["preemptions"] == 0
            assert task.result().numpy().tobytes() == whole.tobytes()
            if kw.current_device().is_simulated:  # a GPU takes less than the window
                # Once it was measured, it is queued in pieces: urgent work waits for one at most.
                assert (task.stats["launches"] > 1) == (turn > 0)
    assert x.numpy()[0] == 4


@hopper_alone
def test_products_with_scales_and_other_types():
    a, b = normal(200, 128, dtype="float8_e4m3fn"), normal(300, 128, dtype="float8_e4m3fn")
    scale = kw.ones(())
    cut_like_whole(lambda: kw.nn.scaled_matmul(a, b.T, scale, scale))
    c = normal(150, 96, dtype="float16")
    cut_like_whole(lambda: kw.nn.linear(c, normal(400, 96, dtype="float16")))


@hopper_alone
@pytest.mark.parametrize("causal", [False, True])
def test_each_block_of_attention_has_one_tile(causal):
    q = normal(1, 6, 300, 64)
    k, v = normal(1, 2, 300, 64), normal(1, 2, 300, 64)
    cut = cut_like_whole(lambda: kw.nn.attention(q, k, v, is_causal=causal, enable_gqa=True))
    assert cut.queued > cut.launches


@hopper_alone
@pytest.mark.parametrize("tile", GROUPED, ids=str)
def test_products_of_groups(tile):
    sizes = [70, 0, 131, 1, 10, 300]
    ends = kw.asarray(np.cumsum(sizes).astype(np.int32))
    x, w = normal(sum(sizes), 136), normal(6, 520, 136)
    cut = cut_like_whole(lambda: _core._grouped_product(x, w, ends, "ends", tile=tile))
    assert cut.queued > cut.launches


@hopper_alone
def test_gradients_of_groups():
    ends = kw.asarray(np.array([70, 70, 200], np.int32))
    x, w = normal(200, 136), normal(3, 264, 136)

    def total(w):
        return kw.sum(kw.nn.grouped_linear(x, w, ends).astype("float32"))

    cut_like_whole(lambda: kw.grad(total)(w))


@hopper_alone
def test_norms_and_softmax():
    x = normal(50, 700, dtype="float32")
    cut_like_whole(lambda: kw.nn.softmax(x), 7)
    cut_like_whole(lambda: kw.nn.rms_norm(x, kw.ones(700)), 7)


@hopper_alone
def test_slices_hold_whole_clusters():
    ranks = kw.kernel(CLUSTERS, "ranks")
    config = kw.LaunchConfig(grid=(8, 3), block=1, cluster=2)
    whole = kw.zeros(24, "int32")
    ranks.launch(config, whole)
    for max_blocks in (1, 3, 6, 24):
        x = kw.zeros(24, "int32")
        ranks.slice(max_blocks).launch(config, x)
        np.testing.assert_array_equal(x.numpy(), whole.numpy())


@hopper_alone
def test_clusters_that_cannot_be_cut():
    ranks = kw.kernel(CLUSTERS, "ranks")
    x = kw.zeros(24, "int32")
    with pytest.raises(kw.NotSliceable, match="no rows of the grid"):
        ranks.slice(2).launch(kw.LaunchConfig(grid=(8, 2), block=1, cluster=(1, 2)), x)
    with pytest.raises(kw.NotSliceable, match="stop together"):
        yielding = ranks.yielding(kw.zeros(2, "uint32"))
        yielding.launch(kw.LaunchConfig(grid=8, block=1, cluster=2), x)
    fixed = kw.kernel("__global__ void __cluster_dims__(1, 2, 1) k(int* x) { x[0] = 1; }")
    with pytest.raises(kw.NotSliceable, match="1 x 2 x 1"):
        fixed.slice(2)[(2, 4), 1](x)


@hopper_alone
def test_attention_that_yields_goes_on():
    q, k, v = (normal(1, 5, 300, 64) for _ in range(3))
    whole = kw.nn.attention(q, k, v)
    out, words = kw.zeros_like(whole), kw.asarray(np.array([1, 0], np.uint32))
    for stop in (1, 0):
        words[0] = stop
        with kw.slices(2**31 - 1, strict=True, words=words.ptr) as cut:
            kw.nn.attention(q, k, v, out=out)
        assert cut.launches == 1
        assert bool(out.numpy().any()) == (stop == 0)
    assert out.numpy().tobytes() == whole.numpy().tobytes()


# Rows and columns of a tile, stages, warpgroups, whether they take turns, blocks of a cluster.
YIELDING = [(64, 64, 3, 1, False, 1), (128, 64, 3, 2, False, 2), (64, 128, 3, 2, True, 2)]


def yields_and_goes_on(call):
    """`call` stops after two tiles or some more, and the next one computes the others."""
    whole = call().numpy()
    words, parts = kw.asarray(np.array([3, 0], np.uint32)), []
    for order in (3, 0):
        words[0] = order
        with kw.slices(2**31 - 1, strict=True, words=words.ptr) as cut:
            parts.append(call().numpy())  # another array: it has the tiles of this launch alone
        assert cut.queued == cut.launches == 1
        # A GPU with a place for each tile takes all at once.
        most = 2**30 if kw.current_device().is_simulated else 2**32
        assert 2 <= int(words[1]) < most if order else int(words[1]) >= 2**30
    bits = f"u{whole.dtype.itemsize}"
    first, second = (part.view(bits) == whole.view(bits) for part in parts)
    if kw.current_device().is_simulated:
        assert not first.all() and not second.all()
    assert (first | second).all()


@hopper_alone
@pytest.mark.parametrize("tile", YIELDING, ids=str)
def test_products_that_yield_go_on(tile):
    a, b = normal(520, 200), normal(200, 400)
    yields_and_goes_on(lambda: _core._gemm(a, b, tile=tile, splits=1))


@hopper_alone
def test_products_of_groups_that_yield_go_on():
    ends = kw.asarray(np.array([70, 201, 400], np.int32))
    x, w = normal(400, 136), normal(3, 520, 136)
    yields_and_goes_on(lambda: _core._grouped_product(x, w, ends, "ends", tile=GROUPED[0]))


@hopper_alone
def test_products_with_scales_that_yield_go_on():
    a, b = normal(600, 128, dtype="float8_e4m3fn"), normal(700, 128, dtype="float8_e4m3fn")
    scale = kw.ones(())
    yields_and_goes_on(lambda: kw.nn.scaled_matmul(a, b.T, scale, scale))


def wait_until(condition):
    """Looks again and again; the suite's own limit of time ends a wait that is in vain."""
    while not condition():
        threading.Event().wait(0.001)


@hopper_alone
def test_a_product_of_best_effort_yields_to_guaranteed_work():
    simulated = kw.current_device().is_simulated
    rows, depth, columns = (2400, 32, 2304) if simulated else (8192, 8192, 8192)
    a, b, x = normal(rows, depth), normal(depth, columns), kw.ones(32)
    small = kw.kernel("__global__ void add(float* x) { x[threadIdx.x] += 1; }")
    whole, stopped = (a @ b).numpy(), threading.Event()
    ended = []  # products; the last one is kept

    def products():
        while not stopped.is_set():
            ended.append(a @ b)
            ended[:-1] = [None] * len(ended[:-1])

    with Scheduler(memory=2**31, yields=True) as scheduler:
        task = scheduler.submit(products, qos="best_effort", memory=2**30)

        def urgent():
            # No launch of best effort enters while this runs: one waits, or has yielded.
            wait_until(lambda: task.stats["preemptions"] > before)
            count = len(ended)
            small[1, 32](x)
            kw.current_stream().synchronize()
            if "yielded" in scheduler.explain(task) and len(ended) == count:
                stopped.set()  # the product that yielded is the last one

        for _ in range(100):
            wait_until(lambda: "stops when" in scheduler.explain(task))
            before = task.stats["preemptions"]
            scheduler.submit(urgent).result()
            if stopped.is_set():  # else the product had just ended
                break
        else:
            pytest.fail("no product yielded")
        task.result()
        assert ended[-1].numpy().tobytes() == whole.tobytes()
        assert scheduler.stats()["memory"]["reserved"] == 0


@simulated_elsewhere
def test_on_a_simulated_device_of_9_0():
    run_at_9_0(__file__)
