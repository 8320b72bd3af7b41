"""The kernels of long scans under all checks, on few elements: several blocks, rows and groups.

The library takes these kernels from many elements on. With fewer threads a block, tiles are small.
"""

import pathlib

import numpy as np
import pytest

import kernwright as kw

SOURCES = pathlib.Path(__file__).parents[2] / "kernels_src/scan"
PLAN = np.dtype(
    [
        ("ndim", "<i4"), ("stride", "<i8", (4, 2)), ("extent", "<i8", 4), ("magic", "<u4", 4),
        ("shift", "<u4", 4), ("from", "<i8"), ("to", "<i8"), ("rows", "<u4"), ("length", "<u4"),
        ("segment", "<u4"), ("segments", "<u4"), ("initial", "<i4"),
    ],
    align=True,
)  # fmt: skip
CARRY = 16  # bytes, at most


def plan_of(rows, length):
    plan = np.zeros((), PLAN)
    plan["from"] = plan["to"] = 4
    plan["rows"], plan["length"] = rows, length
    if rows > 1:
        plan["ndim"], plan["extent"][0] = 1, rows
        plan["stride"][0] = 4 * length
        bits = 31 + (rows - 1).bit_length()
        plan["magic"][0], plan["shift"][0] = ((1 << bits) + rows - 1) // rows, bits - 32
    return plan.tobytes()


def kernel_of(file, constant, threads, instance):
    """The kernel with another number of threads."""
    lines = (SOURCES / file).read_text().splitlines(keepends=True)
    at = [i for i, line in enumerate(lines) if line.startswith(f"constexpr int {constant} = ")]
    assert len(at) == 1
    lines[at[0]] = f"constexpr int {constant} = {threads};\n"
    return kw.kernel("".join(lines), name=instance)


def pointers(*addresses):
    return np.array(addresses, "<u8").tobytes()


def check(rows, length, tiles, launch):
    """launch(y, x, words, carries), where words are zeros before and after."""
    values = np.random.default_rng(length).integers(-9, 9, (rows, length)).astype(np.float32)
    x, y = kw.asarray(values), kw.empty((rows, length))
    groups = rows * -(-tiles // 32)
    words = kw.zeros(2 + 4 * tiles * rows + groups, "uint32")
    carries = kw.empty((tiles * rows + 2 * groups) * CARRY, "uint8")
    with kw.checks("memory", "init", "race", "sync") as found:
        launch(y, x, words, carries)
        kw.synchronize()
    assert not found.findings, str(found)
    np.testing.assert_array_equal(y.numpy(), np.cumsum(values, 1))
    assert not words.numpy().any()


@pytest.mark.parametrize(("rows", "length"), [(1, 64 * 101 - 5), (3, 64 * 34 + 1)])
def test_tiles_that_look_back(rows, length):
    """Tiles of 64 elements; 32 of them are a group, and groups look back at groups."""
    threads, tiles = 64, -(-length // 64)
    name = "scan_tiles<RunningSum<Float32, Float32>, 1, 1, unsigned int>"
    run = kernel_of("scan.cu", "kTileThreads", threads, name)[rows * tiles, threads]

    def launch(y, x, words, carries):
        groups = rows * -(-tiles // 32)
        total = carries.ptr + tiles * rows * CARRY
        flags = words.ptr + 8
        board = pointers(words.ptr, words.ptr + 4, flags, flags + 4 * rows * tiles, carries.ptr,
                         total, total + groups * CARRY)  # fmt: skip
        run(kw.Pointer(y.ptr), kw.Pointer(x.ptr), plan_of(rows, length), board, np.uint32(tiles))

    check(rows, length, tiles, launch)


@pytest.mark.parametrize("together", ["false", "true"])
def test_few_tiles_that_wait_for_each(together):
    rows, length, threads = 3, 64 * 40 - 7, 64
    tiles = -(-length // threads)
    name = f"scan_few_tiles<RunningSum<Float32, Float32>, 1, 1, unsigned int, {together}>"
    run = kernel_of("scan.cu", "kTileThreads", threads, name)[rows * tiles, threads]

    def launch(y, x, words, carries):
        posts = pointers(words.ptr, words.ptr + 4, words.ptr + 8)
        run(kw.Pointer(y.ptr), kw.Pointer(x.ptr), plan_of(rows, length), posts, np.uint32(tiles))

    check(rows, length, tiles, launch)


# With 96 threads one warp takes groups: the later blocks begin behind several of them.
@pytest.mark.parametrize(
    ("rows", "length", "blocks", "threads"),
    [(1, 34_001, 2, 512), (2, 17_000, 3, 512), (1, 96 * 4 * 120 - 3, 100, 96)],
)
def test_tiles_under_way(rows, length, blocks, threads):
    steps, pack = (2, 4) if threads == 512 else (1, 4)
    name = f"scan_flow<RunningSum<Float32, Float32>, {pack}, {steps}, unsigned int>"
    tiles = -(-length // (threads * steps * pack))
    kernel = kernel_of("scan_flow.cu", "kThreads", threads, name)
    run = kernel[blocks, threads, None, 3 * steps * threads * 16]

    def launch(y, x, words, carries):
        posts = pointers(words.ptr, words.ptr + 4, words.ptr + 8)
        run(kw.Pointer(y.ptr), kw.Pointer(x.ptr), plan_of(rows, length), posts, np.uint32(tiles),
            np.uint32(tiles * rows))  # fmt: skip

    check(rows, length, tiles, launch)
