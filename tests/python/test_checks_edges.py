"""Bulk tensor stores with a box over the tensor's edge read only the elements they store."""

import itertools
import random

import pytest
from children import run_child

import kernwright as kw

pytestmark = pytest.mark.usefixtures("sim")

SOURCE = r"""
struct alignas(64) CUtensorMap { unsigned long long opaque[16]; };
// Thread 0 stores the tile, of which elements are written whose places are in `places`; then some
// thread writes element `late`, if that is not negative, before anybody waits.
__global__ void k(const __grid_constant__ CUtensorMap out, const int* places, int count, int late) {
    extern __shared__ __align__(1024) float tile[];
    for (int i = threadIdx.x; i < count; i += blockDim.x) tile[places[i]] = i;
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    unsigned s = (unsigned)__cvta_generic_to_shared(tile);
    if (threadIdx.x == 0) {
        asm volatile("INSTRUCTION [%0, {COORDINATES}], [%1];" :: "l"(&out), "r"(s) : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    }
    __syncthreads();
    if (threadIdx.x == 33 && late >= 0) tile[late] = -1;
    if (threadIdx.x == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
"""

PROGRAM = """
import numpy as np, kernwright as kw
SOURCE = {source!r}
for map_of, instruction, origin, places, outside, bytes in {cases!r}:
    y = kw.zeros(map_of[1], dtype=np.float32)
    if map_of[0] == "tile":
        m = kw.TensorMap(y, map_of[2], element_strides=map_of[3], swizzle=map_of[4])
    else:
        m = kw.TensorMap.im2col(y, *map_of[2:])
    text = SOURCE.replace("INSTRUCTION", instruction)
    text = text.replace("COORDINATES", ", ".join(map(str, origin)))
    kernel = kw.kernel(text, arch="sm_90a")
    def run(check, places, late=-1):
        places = kw.asarray(np.array([*places, 0], np.int32))
        with kw.checks(check) as report:
            kernel[1, 64, None, bytes](m, places, places.size - 1, late)
        return [finding.kind for finding in report]
    whole = range(bytes // 4)
    assert run("init", places) == [], (map_of, origin)
    for left_out in (1, 4):  # a part of 16 bytes, and all of them
        found = run("init", places[:-left_out])
        assert found == (["init"] if places else []), (map_of, origin, left_out)
    if outside:
        assert run("race", whole, outside[0]) == run("race", whole, outside[-1]) == [], map_of
    if places:
        assert run("race", whole, places[0]) == ["race"], (map_of, origin)
print("fine")
"""

CHUNKS = {"none": 0, "32B": 1, "64B": 3, "128B": 7}


def place_of(element, swizzle):
    """Where an element of four bytes of the tile lies in shared memory."""
    at = 4 * element
    return (at ^ ((at >> 7 & CHUNKS[swizzle]) << 4)) // 4


def case(map_of, instruction, origin, inside, swizzle="none"):
    places = [place_of(i, swizzle) for i, there in enumerate(inside) if there]
    outside = [place_of(i, swizzle) for i, there in enumerate(inside) if not there]
    return map_of, instruction, origin[::-1], places, outside, 4 * len(inside)


def tile_case(choose, rank):
    swizzle = choose.choice(list(CHUNKS))
    shape = [choose.randint(1, 6) for _ in range(rank - 1)] + [4 * choose.randint(1, 8)]
    inner = 8 if swizzle == "32B" else 16 if swizzle == "64B" else 4 * choose.choice([1, 4, 8])
    box = [choose.randint(1, 4) for _ in range(rank - 1)] + [inner]
    steps = [choose.choice([1, 1, 2]) for _ in range(rank - 1)] + [1]
    origin = [choose.randint(0, extent) for extent in shape[:-1]]
    origin.append(4 * choose.randint(0, shape[-1] // 4))
    ranges = [range(at, at + n, step) for at, n, step in zip(origin, box, steps, strict=True)]
    inside = [
        all(at < extent for at, extent in zip(index, shape, strict=True))
        for index in itertools.product(*ranges)
    ]
    reduce = choose.random() < 0.4
    instruction = "cp.reduce.async.bulk.tensor" if reduce else "cp.async.bulk.tensor"
    instruction += f".{rank}d.global.shared::cta" + (".add" if reduce else "") + ".tile.bulk_group"
    map_of = ("tile", tuple(shape), tuple(box), tuple(steps), swizzle)
    return case(map_of, instruction, origin, inside, swizzle)


def im2col_case(choose, rank):
    shape = [choose.randint(1, 3) for _ in range(rank - 1)] + [4 * choose.randint(1, 4)]
    channels, pixels = 4 * choose.choice([1, 2, 4]), choose.randint(1, 12)
    origin = [choose.randrange(extent) for extent in shape[:-1]] + [4 * choose.randint(0, 3)]
    walk = list(itertools.product(*map(range, shape[:-1])))
    left = len(walk) - walk.index(tuple(origin[:-1]))
    inside = [
        pixel < left and origin[-1] + channel < shape[-1]
        for pixel, channel in itertools.product(range(pixels), range(channels))
    ]
    instruction = f"cp.async.bulk.tensor.{rank}d.global.shared::cta.im2col_no_offs.bulk_group"
    corner = (0,) * (rank - 2)
    return case(
        ("im2col", tuple(shape), corner, corner, channels, pixels), instruction, origin, inside
    )


@pytest.mark.parametrize("seed", range(4))
def test_stores_read_what_lies_inside_the_tensor(seed):
    choose = random.Random(seed)
    cases = [tile_case(choose, rank) for rank in range(1, 6) for _ in range(3)]
    cases += [im2col_case(choose, rank) for rank in (3, 4, 5)]
    assert any(outside for *_, outside, _ in cases)
    program = PROGRAM.format(source=SOURCE, cases=cases)
    environment = {"KERNWRIGHT_DEVICE": "sim", "KERNWRIGHT_SIM_CAPABILITY": "9.0"}
    ended = run_child(program, **environment)
    assert (ended.code, ended.out) == (0, "fine\n"), ended.err


def test_a_box_inside_the_tensor_is_read_as_a_whole():
    assert kw.current_device().is_simulated
    y = "tile", (8, 16), (8, 16), (1, 1), "none"
    instruction = "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group"
    program = PROGRAM.format(source=SOURCE, cases=[case(y, instruction, [0, 0], [True] * 128)])
    environment = {"KERNWRIGHT_DEVICE": "sim", "KERNWRIGHT_SIM_CAPABILITY": "9.0"}
    ended = run_child(program, **environment)
    assert (ended.code, ended.out) == (0, "fine\n"), ended.err
