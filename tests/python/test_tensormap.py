"""Tensor maps that kernels change: tensormap.replace, tensormap.cp_fenceproxy, copies through them.

On a GPU of compute capability 9.0 or newer this shows what it does; on a simulated device of 9.0,
in a process of its own, that the simulated device does the same.
"""

import os
import subprocess
import sys

import numpy as np
import pytest

import kernwright as kw

HAS_MAPS = kw.current_device().compute_capability >= (9, 0)
needs_maps = pytest.mark.skipif(not HAS_MAPS, reason="runs in test_on_a_device_of_9_0")

HEAD = r"""
struct alignas(64) CUtensorMap { unsigned long long opaque[16]; };
__device__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
"""

CHANGE = (
    HEAD
    + r"""
__global__ void change(const __grid_constant__ CUtensorMap map, unsigned long long* out,
                       unsigned long long wide) {
    __shared__ alignas(128) unsigned long long copy[16];
    const unsigned narrow = (unsigned)wide;
    if (threadIdx.x < 16) copy[threadIdx.x] = map.opaque[threadIdx.x];
    if (threadIdx.x < 16) out[threadIdx.x] = map.opaque[threadIdx.x];
    __syncwarp();
    if (threadIdx.x == 0)
        asm volatile("tensormap.replace.tile." FIELD :: KIND(PLACE), "l"(wide), "r"(narrow)
                     : "memory");
    __syncwarp();
    if (IN_SHARED)
        asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu"
                     ".sync.aligned [%0], [%1], 128;" :: "l"(out), "r"(shared_address(copy))
                     : "memory");
}
"""
)
PLACES = {
    "shared::cta": ("shared_address(copy)", '"r"', 1),
    "generic": ("copy", '"l"', 1),
    "global": ("out", '"l"', 0),
}


def words(tensor_map):
    """The descriptor's 32 words."""
    return np.frombuffer(bytes(tensor_map), "u4").copy()


def replaced(tensor_map, field, value, space="shared::cta"):
    """The words after `tensormap.replace.tile.FIELD` with `value` in %1 (64 bits) and %2."""
    place, kind, in_shared = PLACES[space]
    text = field.replace("SPACE", "" if space == "generic" else f".{space}")
    given = {"FIELD": f'"{text}"', "KIND": kind, "PLACE": place, "IN_SHARED": in_shared}
    out = kw.zeros(16, dtype="uint64")
    kw.kernel(CHANGE, defines=given)[1, 32](tensor_map, out, value)
    return out.numpy().view("u4")


def tensor(shape=(5, 12, 64), dtype="float32"):
    return kw.zeros(shape, dtype=dtype)


def made(x, box=(2, 4, 16), **options):
    return kw.TensorMap(x, box, **options)


# Words that no field is part of: the bytes of a box and the reach of a swizzle, which the driver
# works out and tensormap.replace leaves as they are.
WORKED_OUT = [0x40 // 4, 0x48 // 4]


def case(name):
    """The map before, the instruction with its value, and the map that the driver makes anew."""
    x = tensor()
    before = made(x)
    if name == "address":
        other = tensor()
        return before, "global_addressSPACE.b1024.b64 [%0], %1;", other.ptr, made(other)
    if name.startswith("extent"):
        axis = int(name[-1])  # PTX counts from the last axis
        shape = [5, 12, 64]
        shape[2 - axis] -= 3
        view = x[tuple(slice(0, extent) for extent in shape)]
        text = f"global_dimSPACE.b1024.b32 [%0], {axis}, %2;"
        return before, text, shape[2 - axis], made(view)
    if name.startswith("stride"):
        axis = int(name[-1])
        wide = tensor((11, 24, 64))
        before = made(wide[:5, :12])
        view = wide[:5, ::2] if axis == 0 else wide[:10:2, :12]
        text = f"global_strideSPACE.b1024.b64 [%0], {axis}, %1;"
        return before, text, view.strides[1 - axis], made(view)
    if name.startswith("box"):
        axis = int(name[-1])
        box = [2, 4, 16]
        box[2 - axis] *= 2
        return before, f"box_dimSPACE.b1024.b32 [%0], {axis}, %2;", box[2 - axis], made(x, box)
    if name.startswith("step"):
        axis = int(name[-1])
        steps = [1, 1, 1]
        steps[2 - axis] = 2
        text = f"element_strideSPACE.b1024.b32 [%0], {axis}, %2;"
        return before, text, 2, made(x, element_strides=steps)
    if name.startswith("swizzle"):
        mode = int(name[-1])
        after = made(x, (2, 4, 8), swizzle=["none", "32B", "64B", "128B"][mode])
        return made(x, (2, 4, 8)), f"swizzle_modeSPACE.b1024.b32 [%0], {mode};", 0, after
    assert name == "fill"
    after = made(x, oob_fill="nan_request_zero_fma")
    return before, "fill_modeSPACE.b1024.b32 [%0], 1;", 0, after


CASES = [
    "address",
    *(f"{what} {axis}" for what in ("extent", "box", "step") for axis in range(3)),
    *(f"stride {axis}" for axis in range(2)),
    *(f"swizzle {mode}" for mode in range(4)),
    "fill",
]


@pytest.mark.skipif(HAS_MAPS, reason="the device has tensor maps")
def test_on_a_device_of_9_0():
    environment = {**os.environ, "KERNWRIGHT_DEVICE": "sim", "KERNWRIGHT_SIM_CAPABILITY": "9.0"}
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", __file__]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "runs in test_on_a_device_of_9_0" not in run.stdout


@needs_maps
@pytest.mark.parametrize("name", CASES)
def test_a_field_is_what_the_driver_writes(name):
    before, field, value, after = case(name)
    want = words(after)
    want[WORKED_OUT] = words(before)[WORKED_OUT]
    everywhere = name in ("address", "box 1", "stride 1", "fill")
    for space in PLACES if everywhere else ["shared::cta"]:
        got = replaced(before, field, value, space)
        assert [f"{at * 4:#x}" for at in np.flatnonzero(got != want)] == []


TYPES = {
    0: "uint8",
    1: "uint16",
    2: "uint32",
    3: "int32",
    4: "uint64",
    5: "int64",
    6: "float16",
    7: "float32",
    9: "float64",
    10: "bfloat16",
}


@needs_maps
def test_types_have_the_numbers_of_the_manual():
    map_of = {number: kw.TensorMap(tensor((64,), dtype), (16,)) for number, dtype in TYPES.items()}
    for number, data_type in {8: "float32_ftz", 11: "tfloat32", 12: "tfloat32_ftz"}.items():
        map_of[number] = kw.TensorMap(tensor((64,)), (16,), data_type=data_type)
    before = map_of[7]
    type_word = 0x08 // 4
    for number, after in map_of.items():
        got = replaced(before, f"elemtypeSPACE.b1024.b32 [%0], {number};", 0)
        assert got[type_word] == words(after)[type_word]


@needs_maps
def test_rank_and_interleaving_stand_in_the_third_word():
    before = made(tensor())
    old = words(before)
    for text, value, mask, bits in [
        ("rankSPACE.b1024.b32 [%0], %2;", 1, 7 << 4, 1 << 4),
        ("rankSPACE.b1024.b32 [%0], %2;", 4, 7 << 4, 4 << 4),
        ("interleave_layoutSPACE.b1024.b32 [%0], 1;", 0, 3 << 11, 1 << 11),
        ("interleave_layoutSPACE.b1024.b32 [%0], 2;", 0, 3 << 11, 2 << 11),
    ]:
        want = old.copy()
        want[2] = int(want[2]) & ~mask | bits
        assert (replaced(before, text, value) == want).all()


GROUPS = (
    HEAD
    + r"""
// Each block copies a tile of its own matrix, through a map that it makes of the one given.
extern __shared__ __align__(1024) unsigned char tile[];
__global__ void groups(const __grid_constant__ CUtensorMap map, CUtensorMap* maps,
                       const unsigned long long* matrices, const int* rows, const int* columns,
                       int bytes, unsigned char* out) {
    __shared__ alignas(128) CUtensorMap own;
    __shared__ alignas(8) unsigned long long barrier;
    const unsigned bar = shared_address(&barrier);
    CUtensorMap* const there = maps + 2 * blockIdx.x;
    if (threadIdx.x == 0) {
        own = map;
        const unsigned at = shared_address(&own);
        asm volatile("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;"
                     :: "r"(at), "l"(matrices[blockIdx.x]) : "memory");
        asm volatile("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 0, %1;"
                     :: "r"(at), "r"(columns[blockIdx.x]) : "memory");
        asm volatile("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 1, %1;"
                     :: "r"(at), "r"(rows[blockIdx.x]) : "memory");
        asm volatile("tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%0], 0, %1;"
                     :: "r"(at), "l"(4ull * columns[blockIdx.x]) : "memory");
    }
    __syncwarp();
    if (threadIdx.x < 32)
        asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu"
                     ".sync.aligned [%0], [%1], 128;" :: "l"(there), "r"(shared_address(&own))
                     : "memory");
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n"
                     "fence.mbarrier_init.release.cluster;" :: "r"(bar) : "memory");
        asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" :: "l"(there)
                     : "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                     :: "r"(bar), "r"(bytes) : "memory");
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx"
                     "::bytes [%0], [%1, {%3, %4}], [%2];"
                     :: "r"(shared_address(tile)), "l"(there), "r"(bar), "r"(4), "r"(2) : "memory");
    }
    __syncthreads();
    asm volatile("{\n.reg .pred done;\nAGAIN:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], 0;\n"
                 "@!done bra AGAIN;\n}" :: "r"(bar) : "memory");
    for (int i = threadIdx.x; i < bytes; i += blockDim.x) out[blockIdx.x * bytes + i] = tile[i];
}
"""
)


@needs_maps
def test_each_block_copies_through_a_map_of_its_own():
    random = np.random.default_rng(5)
    values = [random.random((r, c), np.float32) for r, c in [(9, 16), (3, 8), (40, 100), (6, 20)]]
    arrays = [kw.asarray(v) for v in values]
    box = (4, 16)
    given = kw.TensorMap(arrays[0], box)
    maps = kw.zeros((4, 256), dtype="uint8")
    bytes_each = 4 * box[0] * box[1]
    out = kw.zeros(4 * bytes_each, dtype="uint8")
    kernel = kw.kernel(GROUPS)

    def launch():
        kernel[4, 64, None, bytes_each](
            given,
            maps,
            kw.asarray(np.array([a.ptr for a in arrays], np.uint64)),
            kw.asarray(np.array([v.shape[0] for v in values], np.int32)),
            kw.asarray(np.array([v.shape[1] for v in values], np.int32)),
            bytes_each,
            out,
        )
        return out.numpy().view("f4").reshape(4, *box)

    want = np.zeros((4, *box), np.float32)
    for block, v in enumerate(values):
        part = v[2 : 2 + box[0], 4 : 4 + box[1]]
        want[block, : part.shape[0], : part.shape[1]] = part
    np.testing.assert_array_equal(launch(), want)
    if kw.current_device().is_simulated:
        with kw.checks("init", "race", "sync") as report:
            np.testing.assert_array_equal(launch(), want)
        report.raise_if_any()


@needs_maps
@pytest.mark.skipif(not kw.current_device().is_simulated, reason="says what a GPU does not")
@pytest.mark.parametrize(("place", "words"), [("(char*)out + 32", 64), ("out", 8)])
def test_a_place_that_no_map_has_is_said(place, words):
    given = {
        "FIELD": '"rank.global.b1024.b32 [%0], %2;"',
        "KIND": '"l"',
        "PLACE": place,
        "IN_SHARED": 0,
    }
    text = CHANGE.replace("if (threadIdx.x < 16) out", "if (threadIdx.x < 8) out")
    with pytest.raises(kw.DeviceFault, match=r"128 bytes|multiple of 64"):
        kw.kernel(text, defines=given)[1, 32](made(tensor()), kw.zeros(words, "uint64"), 1)
