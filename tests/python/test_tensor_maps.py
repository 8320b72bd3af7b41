"""Tensor maps: tile and im2col copies against NumPy, and every rule with its words.

They are of devices from compute capability 9.0 on. One test runs this file again, in a process of
its own that a fault of a copy ends: on the device at hand, or where that is older (the simulated
one, unless told otherwise) on a simulated device of 9.0.
"""

import gc
import itertools
import os
import subprocess
import sys

import numpy as np
import pytest

import kernwright as kw

HAS_MAPS = kw.current_device().compute_capability >= (9, 0)
IS_CHILD = "KERNWRIGHT_TEST_TENSOR_MAPS" in os.environ
needs_maps = pytest.mark.skipif(not IS_CHILD, reason="runs in test_on_a_device_of_9_0")

HEAD = r"""
struct alignas(64) CUtensorMap { unsigned long long opaque[16]; };
__device__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void begin(unsigned bar, unsigned bytes) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n"
                 "fence.mbarrier_init.release.cluster;" :: "r"(bar) : "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 :: "r"(bar), "r"(bytes) : "memory");
}
__device__ void wait(unsigned bar) {
    asm volatile("{\n.reg .pred done;\nAGAIN:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], 0;\n"
                 "@!done bra AGAIN;\n}" :: "r"(bar) : "memory");
}
extern __shared__ __align__(1024) unsigned char tile[];  // the barrier lies behind it
"""

LOAD = (
    HEAD
    + r"""
__global__ void load(const __grid_constant__ CUtensorMap map, unsigned char* out, int bytes,
                     int c0, int c1, int c2) {
    const unsigned bar = shared_address(tile) + (bytes + 7) / 8 * 8;
    if (threadIdx.x == 0) {
        begin(bar, bytes);
#if RANK == 1
        asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx"
                     "::bytes [%0], [%1, {%3}], [%2];"
                     :: "r"(shared_address(tile)), "l"(&map), "r"(bar), "r"(c0) : "memory");
#elif RANK == 2
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx"
                     "::bytes [%0], [%1, {%3, %4}], [%2];"
                     :: "r"(shared_address(tile)), "l"(&map), "r"(bar), "r"(c0), "r"(c1)
                     : "memory");
#else
        asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx"
                     "::bytes [%0], [%1, {%3, %4, %5}], [%2];"
                     :: "r"(shared_address(tile)), "l"(&map), "r"(bar), "r"(c0), "r"(c1), "r"(c2)
                     : "memory");
#endif
    }
    __syncthreads();
    wait(bar);
    for (int i = threadIdx.x; i < bytes; i += blockDim.x) out[i] = tile[i];
}
"""
)


def load(tensor_map, origin):
    """The bytes of one box, at `origin` in the order of the array's axes."""
    kernel = kw.kernel(LOAD, defines={"RANK": len(origin)})
    out = kw.empty(tensor_map.box_bytes, "uint8")
    coordinates = [*reversed(origin), 0, 0][:3]
    kernel[1, 64, None, tensor_map.box_bytes + 16](
        tensor_map, out, tensor_map.box_bytes, *map(int, coordinates)
    )
    return out.numpy()


def box_of(values, origin, box, steps, outside=0):
    """The same by NumPy, element for element."""
    shape = [-(-extent // step) for extent, step in zip(box, steps, strict=True)]
    result = np.full(shape, outside, values.dtype)
    for place in itertools.product(*map(range, shape)):
        at = [o + p * s for o, p, s in zip(origin, place, steps, strict=True)]
        if all(0 <= a < extent for a, extent in zip(at, values.shape, strict=True)):
            result[place] = values[tuple(at)]
    return result


@pytest.mark.skipif(IS_CHILD, reason="is the other process")
def test_on_a_device_of_9_0():
    environment = {**os.environ, "KERNWRIGHT_TEST_TENSOR_MAPS": "1"}
    if not HAS_MAPS:
        environment |= {"KERNWRIGHT_DEVICE": "sim", "KERNWRIGHT_SIM_CAPABILITY": "9.0"}
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", __file__]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "runs in test_on_a_device_of_9_0" not in run.stdout


@pytest.mark.skipif(HAS_MAPS, reason="the device has tensor maps")
def test_older_devices_have_none():
    with pytest.raises(kw.DriverError, match=r"compute capability 9.0 or newer.*8\.0") as error:
        kw.TensorMap(kw.ones((8, 8)), (8, 8))
    assert error.value.name == "CUDA_ERROR_NOT_SUPPORTED"


@needs_maps
@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "bfloat16", "int64"])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_boxes_are_those_of_numpy(rank, dtype):
    random = np.random.default_rng(rank)
    shape = (5, 13, 64)[3 - rank :]
    x = kw.asarray(random.integers(1, 100, shape)).astype(dtype)
    values = x.numpy()
    box = (2, 4, 32)[3 - rank :]
    tensor_map = kw.TensorMap(x, box)
    unit = 16 // values.itemsize  # GPUs want the last axis' coordinate at multiples of 16 bytes
    for origin in [(0, 0, 0), (4, 10, 48), (-1, -2, -unit), (9, 9, 2 * unit), (3, 12, 64 - unit)]:
        origin = origin[3 - rank :]
        want = box_of(values, origin, box, (1,) * rank)
        assert load(tensor_map, origin).tobytes() == want.tobytes()


@needs_maps
def test_views_element_strides_and_nan():
    x = kw.asarray(np.random.default_rng(3).random((40, 12, 32), np.float32))
    part = x[3:31:2, ::3, 4:20]
    tensor_map = kw.TensorMap(
        part, (6, 3, 8), element_strides=(2, 3, 1), oob_fill="nan_request_zero_fma"
    )
    assert tensor_map.strides == part.strides and tensor_map.address == part.ptr
    got = load(tensor_map, (10, 1, 12)).view("f4").reshape(3, 1, 8)
    want = box_of(part.numpy(), (10, 1, 12), (6, 3, 8), (2, 3, 1), np.nan)
    np.testing.assert_array_equal(got, want)
    assert np.isnan(got).any() and not np.isnan(got).all()


@needs_maps
def test_a_single_element_of_a_reversed_axis():
    x = kw.asarray(np.random.default_rng(5).integers(1, 100, (3, 8, 32)).astype(np.uint8))
    for part in (x[::-1][:1], x[:, ::-1][:, 2:3], x[::-1, ::-1][1:2, 3:4]):
        box = (2, 2, 16)
        got = load(kw.TensorMap(part, box), (0, 0, 16))
        assert got.tobytes() == box_of(part.numpy(), (0, 0, 16), box, (1, 1, 1)).tobytes()


@needs_maps
@pytest.mark.parametrize(("swizzle", "chunks"), [("32B", 2), ("64B", 4), ("128B", 8)])
def test_swizzles_exchange_chunks_of_16_bytes(swizzle, chunks):
    x = kw.asarray(np.arange(16 * chunks * 8, dtype=np.uint16).reshape(16, -1))
    got = load(kw.TensorMap(x, x.shape, swizzle=swizzle), (0, 0)).view("u2").reshape(-1, 8)
    plain = x.numpy().reshape(-1, 8)
    for chunk in range(len(plain)):
        row = chunk // 8  # of 128 bytes
        assert (got[chunk ^ row % 8 % chunks] == plain[chunk]).all()


@needs_maps
@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "int64"])
@pytest.mark.parametrize("interleave", ["16B", "32B"])
def test_boxes_of_slices_are_those_of_numpy(interleave, dtype):
    itemsize = np.dtype(dtype).itemsize
    channels = int(interleave[:2]) // itemsize  # of a slice
    random = np.random.default_rng(channels)
    values = random.integers(1, 100, (3, 4, 37, channels)).astype(dtype)  # N, C/8, W, 8
    x = kw.asarray(values)
    swizzle = "none" if interleave == "16B" else "32B"  # the manual wants it
    box, steps = (2, 1, 16, channels), (1, 1, 3, 1)
    tensor_map = kw.TensorMap(x, box, element_strides=steps, interleave=interleave, swizzle=swizzle)
    assert (tensor_map.shape, tensor_map.strides) == (x.shape, x.strides)
    assert (tensor_map.box_dim, tensor_map.element_strides) == (box, steps)
    assert tensor_map.interleave == interleave and "slices of" in repr(tensor_map)
    for origin in [(0, 0, 0), (1, 3, 5), (-1, 2, -7), (2, 1, 36), (0, 4, 0), (0, -1, 3)]:
        got = load(tensor_map, origin)
        if swizzle == "32B":  # chunks of 16 bytes change places in every second row of 128
            chunks = got.reshape(-1, 16).copy()
            got = chunks[[i ^ (i // 8 % 2) for i in range(len(chunks))]]
        want = box_of(values, (*origin, 0), box, steps)
        assert got.tobytes() == want.tobytes()


COLUMNS = (
    HEAD
    + r"""
__global__ void columns(const __grid_constant__ CUtensorMap map, unsigned char* out, int bytes,
                        int c, int w, int h, int n, unsigned short right, unsigned short down) {
    const unsigned bar = shared_address(tile) + (bytes + 7) / 8 * 8;
    if (threadIdx.x == 0) {
        begin(bar, bytes);
        asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx"
                     "::bytes [%0], [%1, {%3, %4, %5, %6}], [%2], {%7, %8};"
                     :: "r"(shared_address(tile)), "l"(&map), "r"(bar), "r"(c), "r"(w), "r"(h),
                        "r"(n), "h"(right), "h"(down) : "memory");
    }
    __syncthreads();
    wait(bar);
    for (int i = threadIdx.x; i < bytes; i += blockDim.x) out[i] = tile[i];
}
"""
)


@needs_maps
@pytest.mark.parametrize("interleave", ["none", "16B"])
@pytest.mark.parametrize("stride", [1, 2])
def test_im2col_columns_are_those_of_a_convolution(stride, interleave):
    """All columns of a 3 x 3 convolution with padding, one filter tap after the other."""
    n, height, width, channels, pad, taps = 2, 7, 9, 16, 1, 3
    values = np.random.default_rng(5).random((n, height, width, channels), np.float32)
    part = channels if interleave == "none" else 4  # channels of a copy
    steps = [1, stride, stride, 1]
    x = kw.asarray(values)
    if interleave != "none":
        x = kw.asarray(np.stack(np.split(values, channels // part, -1), 1))  # N, C/4, H, W, 4
        steps.insert(1, 1)
    pixels = 24
    corner = pad - (taps - 1)  # of the last window's first pixel, from the tensor's last one
    tensor_map = kw.TensorMap.im2col(
        x, (-pad, -pad), (corner, corner), part, pixels, element_strides=steps,
        interleave=interleave,
    )  # fmt: skip
    assert tensor_map.box_bytes == pixels * part * 4
    kernel = kw.kernel(COLUMNS)
    padded = np.pad(values, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    out = kw.empty(tensor_map.box_bytes, "uint8")
    for down, right in itertools.product(range(taps), repeat=2):
        rows = padded[:, down : down + height + 2 * pad - taps + 1 : stride]
        tap = rows[:, :, right : right + width + 2 * pad - taps + 1 : stride]
        windows = (tap.shape[1], tap.shape[2])
        for first, piece in itertools.product(
            (0, 5, n * windows[0] * windows[1] - 10), range(channels // part)
        ):
            want = tap.reshape(-1, channels)[:, piece * part : (piece + 1) * part]
            image, place = divmod(first, windows[0] * windows[1])
            row, column = (v * stride - pad for v in divmod(place, windows[1]))
            at = (0, column, row, image) if interleave == "none" else (column, row, piece, image)
            kernel[1, 64, None, tensor_map.box_bytes + 16](
                tensor_map, out, tensor_map.box_bytes, *at, right, down
            )
            got = out.numpy().view("f4").reshape(pixels, part)
            inside = want[first : first + pixels]
            np.testing.assert_array_equal(got[: len(inside)], inside)
            assert not got[len(inside) :].any()  # behind the last image


@needs_maps
def test_properties_bytes_and_equality():
    x = kw.zeros((6, 40, 64), "float16")
    tensor_map = kw.TensorMap(x, (1, 8, 32), swizzle="64B", l2_promotion="128B")
    assert (tensor_map.shape, tensor_map.strides) == (x.shape, x.strides)
    assert tensor_map.box_dim == (1, 8, 32) and tensor_map.element_strides == (1, 1, 1)
    assert tensor_map.box_bytes == 8 * 32 * 2 and tensor_map.data_type == "float16"
    assert (tensor_map.swizzle, tensor_map.interleave) == ("64B", "none")
    assert (tensor_map.l2_promotion, tensor_map.oob_fill) == ("128B", "none")
    assert tensor_map.pixels_per_column is None and tensor_map.pixel_box_lower_corner is None
    assert tensor_map.device == x.device and tensor_map.array.ptr == x.ptr
    assert len(bytes(tensor_map)) == 128
    same = kw.TensorMap(x, [1, 8, 32], swizzle="64B", l2_promotion="128B")
    assert tensor_map == same and bytes(tensor_map) == bytes(same)
    assert tensor_map != kw.TensorMap(x, (1, 8, 32)) and tensor_map != 5
    with pytest.raises(TypeError, match="unhashable"):
        hash(tensor_map)
    assert "FLOAT16 (6, 40, 64), box (1, 8, 32)" in repr(tensor_map)
    columns = kw.TensorMap.im2col(x, -1, 1, 32, 10)
    assert columns.box_dim is None and columns.channels_per_pixel == 32
    assert columns.pixel_box_lower_corner == (-1,) and columns.pixel_box_upper_corner == (1,)
    assert columns.pixels_per_column == 10 and columns.box_bytes == 640
    rounded = kw.TensorMap(kw.zeros((8, 8)), (8, 8), data_type="tfloat32")
    assert rounded.data_type == "tfloat32"
    assert kw.TensorMap(kw.zeros((8, 8), "int16"), (8, 8)).data_type == "uint16"


@needs_maps
def test_pointers_and_other_addresses():
    x, y = kw.asarray(np.arange(512, dtype=np.int32).reshape(16, 32)), kw.zeros((16, 32), "int32")
    of_array = kw.TensorMap(x, (4, 8))
    pointer = kw.Pointer(x.ptr, "int32")
    assert kw.TensorMap(pointer, (4, 8), shape=(16, 32)) == of_array
    assert kw.TensorMap(pointer, (4, 8), shape=(16, 32), strides=(128, 4)) == of_array
    bare = kw.TensorMap(kw.Pointer(x.ptr), (4, 8), shape=(16, 32), data_type="int32")
    assert bare == of_array and bare.array is None
    of_array.replace_address(y)
    assert of_array == kw.TensorMap(y, (4, 8)) and of_array.array.ptr == y.ptr
    assert not load(of_array, (0, 0)).any()
    bare.replace_address(kw.Pointer(x.ptr + 128))
    assert load(bare, (0, 0)).view("i4")[0] == 32
    with pytest.raises(kw.InvalidArgument, match="make another map"):
        of_array.replace_address(y[:8])
    with pytest.raises(kw.InvalidArgument, match="no multiple of 16"):
        bare.replace_address(kw.Pointer(x.ptr + 8))


@needs_maps
def test_a_map_keeps_its_array_alive():
    before = kw.memory.stats()["used"]
    x = kw.asarray(np.arange(64, dtype=np.float32).reshape(8, 8))
    tensor_map = kw.TensorMap(x, (8, 8))
    del x
    gc.collect()
    assert (load(tensor_map, (0, 0)).view("f4") == np.arange(64)).all()
    del tensor_map
    gc.collect()
    assert kw.memory.stats()["used"] == before


@needs_maps
def test_a_graph_holds_the_array_behind_a_map():
    x = kw.asarray(np.arange(64, dtype=np.float32).reshape(8, 8))
    out = kw.zeros(256, "uint8")
    kernel = kw.kernel(LOAD, defines={"RANK": 2}).compile()
    tensor_map = kw.TensorMap(x, (8, 8))
    graph = kw.Graph()
    with graph.capture():
        kernel[1, 64, None, 272](tensor_map, out, 256, 0, 0, 0)
    tensor_map.replace_address(kw.zeros((8, 8)))
    del x, tensor_map
    gc.collect()
    graph.launch()
    assert (out.numpy().view("f4") == np.arange(64)).all()


@needs_maps
def test_launches_name_the_parameter():
    x, out = kw.zeros((8, 8)), kw.zeros(256, "uint8")
    tensor_map = kw.TensorMap(x, (8, 8))
    kernel = kw.kernel(LOAD, name="load", defines={"RANK": 2})
    config = kernel[1, 64, None, 272]
    with pytest.raises(
        kw.ArgumentError,
        match=r"(?s)parameter 1 \(CUtensorMap\) got .*Array.*map wants "
        "a kw.TensorMap of an array",
    ):
        config(x, out, 256, 0, 0, 0)
    with pytest.raises(
        kw.ArgumentError,
        match=r"parameter 2 .*got a kw.TensorMap: it is passed by "
        "value; declare out as const __grid_constant__",
    ):
        config(tensor_map, tensor_map, 256, 0, 0, 0)
    with pytest.raises(kw.ArgumentError, match=r"parameter 3 .*wants an integer"):
        config(tensor_map, out, tensor_map, 0, 0, 0)
    config(bytes(tensor_map), out, 256, 0, 0, 0)
    small = kw.kernel("struct S { int v[8]; }; __global__ void small(S s) {}")
    with pytest.raises(kw.ArgumentError, match=r"got a kw.TensorMap of 128 bytes: s wants 32"):
        small[1, 1](tensor_map)


@needs_maps
@pytest.mark.parametrize(
    ("shape", "dtype", "box", "options", "text"),
    [
        ((8, 64), "f4", (8,), {}, "wants 2 values for its box, got 1"),
        ((8, 64), "f4", (8, 0), {}, "axis 1: a box of 0 elements is not in 1 to 256"),
        ((8, 64), "f4", (257, 64), {}, "axis 0: a box of 257 elements is not in 1 to 256"),
        ((8, 64), "f4", (8, 3), {}, "rows of 12 bytes, no multiple of 16"),
        ((8, 64), "f4", (8, 64), {"swizzle": "128B"}, "256 bytes, longer than the 128 bytes of"),
        ((8, 64), "f2", (8, 32), {"swizzle": "32B"}, "64 bytes, longer than the 32 bytes of"),
        ((8, 6), "f4", (8, 4), {}, "axis 0: a stride of 24 bytes is no multiple of 16"),
        ((8, 0), "f4", (8, 4), {}, "axis 1: an extent of 0"),
        ((8, 64), "f4", (8, 4), {"element_strides": (9, 1)}, "axis 0: an element stride of 9"),
        ((8, 64), "f4", (8, 4), {"element_strides": 1}, "2 values for its element strides, got 1"),
        ((8, 8, 4), "f4", (1, 8, 4), {"interleave": "16B"}, "4 to 6 axes, the last .*, not 3"),
        ((2, 4, 8, 16), "f2", (1, 1, 8, 16), {"interleave": "32B"}, "needs swizzle 32B, not none"),
        ((2, 4, 8, 4), "f2", (1, 1, 8, 4), {"interleave": "16B"}, "last axis is a slice of 16"),
        ((2, 4, 8, 8), "f2", (1, 2, 8, 8), {"interleave": "16B"}, "axis 1: a box of 2 slices"),
        ((2, 4, 8, 8), "f2", (1, 1, 8, 4), {"interleave": "16B"}, "whole slices of 8 .*, not 4"),
        ((8, 64), "i4", (8, 4), {"oob_fill": "nan_request_zero_fma"}, "floating-point type"),
        ((2,) * 6, "f4", (2,) * 6, {}, "1 to 5 axes, not 6"),
        ((8, 64), "c8", (8, 4), {}, "no elements of complex64"),
        ((8, 64), "f4", (8, 4), {"swizzle": "256B"}, 'swizzle .256B.: it is one of "none", "32B"'),
        ((8, 64), "f4", (8, 4), {"l2_promotion": 1}, 'no l2_promotion 1: it is one of "none"'),
        ((8, 64), "f4", (8, 4), {"data_type": "float16"}, "have 2 bytes, those of the array .*4"),
        ((999, 999, 64), "f4", (256, 15, 16), {}, "a box of 245760 bytes is larger than 233472"),
        ((8, 64), "f4", (8, -1), {}, "box_dim cannot have -1"),
        ((8, 64), "f4", (8, 1 << 40), {}, "box_dim cannot have 1099511627776"),
    ],
)
def test_every_rule_is_named(shape, dtype, box, options, text):
    with pytest.raises(kw.InvalidArgument, match=text):
        kw.TensorMap(kw.zeros(shape, dtype), box, **options)


@needs_maps
def test_im2col_rules_are_named():
    x = kw.zeros((4, 8, 8, 16))

    def refused(text, *arguments, error=kw.InvalidArgument, **options):
        with pytest.raises(error, match=text):
            kw.TensorMap.im2col(x, *arguments, **options)

    refused("2 values for its lower corner, got 1", 0, (0, 0), 16, 8)
    refused("2 values for its upper corner, got 3", (0, 0), (0, 0, 0), 16, 8)
    refused("axis 1: the lower corner of the pixel box, -129, is not in -128 to 127", (-129, 0),
            (0, 0), 16, 8)  # fmt: skip
    refused("axis 2: the pixel box from 0 to -1 is empty", (0, 0), (0, -8), 16, 8)
    refused("257 channels per pixel", (0, 0), (0, 0), 257, 8)
    refused("1025 pixels per column", (0, 0), (0, 0), 16, 1025)
    refused("columns of 245760 bytes are larger than 233472", (0, 0), (0, 0), 60, 1024)
    refused("channels_per_pixel wants an int, got tuple", (0, 0), (0, 0), (16,), 8, error=TypeError)
    refused("64 bytes, longer than the 32 bytes", (0, 0), (0, 0), 16, 8, swizzle="32B")
    with pytest.raises(kw.InvalidArgument, match="im2col takes tensors of 3 to 5 axes, not 2"):
        kw.TensorMap.im2col(kw.zeros((8, 8)), 0, 0, 8, 8)


@needs_maps
def test_wrong_arrays_are_named():
    x = kw.zeros((8, 64))
    with pytest.raises(TypeError, match=r"got numpy.ndarray: copy it .* with kw.asarray"):
        kw.TensorMap(np.zeros((8, 64), "f4"), (8, 4))
    with pytest.raises(TypeError, match=r"wants an array of a device or a kw.Pointer, got int"):
        kw.TensorMap(5, (8, 4))
    with pytest.raises(TypeError, match="box_dim wants an int or ints, got str"):
        kw.TensorMap(x, "8, 4")
    with pytest.raises(TypeError, match="box_dim wants ints, got float"):
        kw.TensorMap(x, (8.0, 4))
    with pytest.raises(TypeError, match="an array has its own"):
        kw.TensorMap(x, (8, 4), shape=(8, 64))
    with pytest.raises(TypeError, match="wants the tensor's shape"):
        kw.TensorMap(kw.Pointer(x.ptr, "f4"), (8, 4))
    with pytest.raises(TypeError, match="wants its dtype"):
        kw.TensorMap(kw.Pointer(x.ptr), (8, 4), shape=(8, 64))
    with pytest.raises(kw.InvalidArgument, match="axis 1: elements of the last axis must follow"):
        kw.TensorMap(x.T, (4, 8))
    with pytest.raises(kw.InvalidArgument, match="axis 0: a stride of -256 bytes is negative"):
        kw.TensorMap(x[::-1], (8, 4))
    with pytest.raises(kw.InvalidArgument, match=r"the address 0x[0-9a-f]+ is no multiple of 16"):
        kw.TensorMap(x[:, 1:61], (8, 4))


@needs_maps
def test_what_a_gpu_ends_without_a_word_is_found_on_the_simulated_device():
    if not kw.current_device().is_simulated:
        pytest.skip("only the simulated device looks")
    out = kw.zeros(256, "uint8")
    kernel = kw.kernel(LOAD, defines={"RANK": 2})
    with pytest.raises(kw.DeviceFault, match="no tensor map"):
        kernel[1, 64, None, 272](bytes(128), out, 256, 0, 0, 0)
        kw.current_device().synchronize()
    with pytest.raises(kw.DeviceFault, match="rank 3, the instruction takes 2"):
        kernel[1, 64, None, 272](kw.TensorMap(kw.zeros((8, 8, 8)), (1, 8, 8)), out, 256, 0, 0, 0)
        kw.current_device().synchronize()
    with pytest.raises(
        kw.DeviceFault, match=r"coordinate 0 is 3.*12 bytes.*multiple of 16"
    ) as error:
        kernel[1, 64, None, 272](kw.TensorMap(kw.zeros((8, 8)), (8, 8)), out, 256, 3, 0, 0)
        kw.current_device().synchronize()
    assert error.value.kind == "alignment"
