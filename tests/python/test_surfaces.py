"""Surfaces: reads, writes, reductions and what lies outside, of every geometry."""

import numpy as np
import pytest

import kernwright as kw

# shape, options, places of a call
GEOMETRIES = {
    "1d": ((13,), {}, "surf1D{}({}s, {}x{})"),
    "2d": ((5, 8), {}, "surf2D{}({}s, {}x, y{})"),
    "3d": ((3, 4, 7), {}, "surf3D{}({}s, {}x, y, z{})"),
    "layered 1d": ((3, 9), {"layered": True}, "surf1DLayered{}({}s, {}x, z{})"),
    "layered 2d": ((4, 5, 6), {"layered": True}, "surf2DLayered{}({}s, {}x, y, z{})"),
    "cube": ((6, 4, 4), {"cubemap": True}, "surfCubemap{}({}s, {}x, y, z{})"),
    "layered cube": (
        (12, 5, 5),
        {"cubemap": True, "layered": True},
        "surfCubemapLayered{}({}s, {}x, y, z{})",
    ),
}
VALUES = {
    ("uint8", 1): "unsigned char",
    ("uint8", 2): "uchar2",
    ("uint8", 4): "uchar4",
    ("int16", 1): "short",
    ("uint16", 2): "ushort2",
    ("int16", 4): "short4",
    ("int32", 1): "int",
    ("uint32", 2): "uint2",
    ("int32", 4): "int4",
    ("float32", 1): "float",
    ("float32", 2): "float2",
    ("float32", 4): "float4",
}

READ = r"""
__global__ void read(cudaSurfaceObject_t s, const int* xs, const int* ys, const int* zs,
                     VALUE* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int x = xs[i] * (int)sizeof(VALUE), y = ys[i], z = zs[i];
    out[i] = CALL;
}
"""
WRITE = r"""
__global__ void write(cudaSurfaceObject_t s, const int* xs, const int* ys, const int* zs,
                      const VALUE* values, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int x = xs[i] * (int)sizeof(VALUE), y = ys[i], z = zs[i];
    VALUE v = values[i];
    CALL;
}
"""


def call_of(geometry, verb, value, mode):
    _, _, text = GEOMETRIES[geometry]
    boundary = f", cudaBoundaryMode{mode}"
    if verb == "read":
        return text.format(f"read<{value}>", "", "", boundary)
    return text.format("write", "v, ", "", boundary)


def run(source, surface, geometry, places, values, dtype, channels=1, mode="Trap"):
    value = VALUES[dtype, channels]
    verb = "read" if source is READ else "write"
    kernel = kw.kernel(
        source, defines={"VALUE": value, "CALL": call_of(geometry, verb, value, mode)}
    )
    axes = [kw.asarray(np.ascontiguousarray(p, np.int32)) for p in places]
    n = len(places[0])
    kernel[-(-n // 64), 64](surface, *axes, values, n)
    return values


def every_place(shape):
    """x, y and z (or the layer) of all elements, in the order of an array's."""
    index = np.indices(shape).reshape(len(shape), -1)[::-1]
    zero = np.zeros(index.shape[1], int)
    if len(shape) == 1:
        return index[0], zero, zero
    if len(shape) == 2:
        return index[0], index[1], zero
    return tuple(index)


def places_of(geometry):
    shape, _, _ = GEOMETRIES[geometry]
    x, y, z = every_place(shape)
    return (x, z, y) if geometry == "layered 1d" else (x, y, z)


def values_of(shape, dtype, channels):
    whole = (*shape, channels) if channels > 1 else shape
    return (np.arange(np.prod(whole)) * 7 + 3).reshape(whole).astype(dtype)


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_read_and_write_everywhere(geometry):
    shape, options, _ = GEOMETRIES[geometry]
    values = values_of(shape, "float32", 1)
    array = kw.CudaArray(shape, surface=True, **options)
    surface = kw.Surface(array)
    count = values.size
    run(WRITE, surface, geometry, places_of(geometry), kw.asarray(values.reshape(-1)), "float32")
    np.testing.assert_array_equal(array.numpy(), values)
    out = kw.zeros(count, dtype="float32")
    run(READ, surface, geometry, places_of(geometry), out, "float32")
    np.testing.assert_array_equal(out.numpy(), values.reshape(-1))


@pytest.mark.parametrize(("dtype", "channels"), VALUES)
def test_every_value(dtype, channels):
    shape = (5, 8)
    values = values_of(shape, dtype, channels)
    array = kw.CudaArray(shape, dtype, channels=channels, surface=True)
    surface = kw.Surface(array)
    flat = values.reshape(-1, channels)
    run(WRITE, surface, "2d", every_place(shape), kw.asarray(flat), dtype, channels)
    np.testing.assert_array_equal(array.numpy(), values)
    out = kw.zeros(flat.shape, dtype=dtype)
    run(READ, surface, "2d", every_place(shape), out, dtype, channels)
    np.testing.assert_array_equal(out.numpy(), flat)


OUTSIDE = (
    np.array([-1, 8, 100, 0, 7, -5, 3]),
    np.array([0, 4, 2, -1, 5, -7, 1 << 20]),
    np.zeros(7, int),
)


def test_reads_outside():
    values = values_of((5, 8), "float32", 1)
    array = kw.CudaArray(values.shape, surface=True)
    array.set(values)
    surface, out = kw.Surface(array), kw.full(7, -1.0, dtype="float32")
    run(READ, surface, "2d", OUTSIDE, out, "float32", mode="Zero")
    np.testing.assert_array_equal(out.numpy(), 0)
    run(READ, surface, "2d", OUTSIDE, out, "float32", mode="Clamp")
    nearest = values[np.clip(OUTSIDE[1], 0, 4), np.clip(OUTSIDE[0], 0, 7)]
    np.testing.assert_array_equal(out.numpy(), nearest)


def test_writes_outside():
    values = values_of((5, 8), "int32", 1)
    array = kw.CudaArray(values.shape, "int32", surface=True)
    array.set(values)
    surface, news = kw.Surface(array), kw.asarray(np.full(7, -5, np.int32))
    run(WRITE, surface, "2d", OUTSIDE, news, "int32", mode="Zero")
    np.testing.assert_array_equal(array.numpy(), values)
    run(WRITE, surface, "2d", OUTSIDE, news, "int32", mode="Clamp")
    values[np.clip(OUTSIDE[1], 0, 4), np.clip(OUTSIDE[0], 0, 7)] = -5
    np.testing.assert_array_equal(array.numpy(), values)


def test_a_texture_reads_what_a_surface_wrote():
    """Launch after launch: in one kernel CUDA leaves it open."""
    source = r"""
    __global__ void smooth(cudaTextureObject_t from, cudaSurfaceObject_t to, int n) {
        int x = threadIdx.x, y = blockIdx.x;
        float v = tex2D<float>(from, x, y + 0.5f) + tex2D<float>(from, x + 1.0f, y + 0.5f);
        surf2Dwrite(v, to, x * 4, y);
    }"""
    values = np.random.default_rng(0).integers(0, 9, (6, 16)).astype(np.float32)
    arrays = [kw.CudaArray(values.shape, surface=True) for _ in range(2)]
    arrays[0].set(values)
    kernel = kw.kernel(source)
    for i in range(4):
        kernel[6, 16](kw.Texture(arrays[i % 2]), kw.Surface(arrays[1 - i % 2]), 16)
        right = np.concatenate([values[:, 1:], values[:, -1:]], axis=1)
        values = values + right
    np.testing.assert_array_equal(arrays[0].numpy(), values)


REDUCE = r"""
__global__ void reduce(cudaSurfaceObject_t s, const int* values) {
    int x = threadIdx.x % 4 * 4, y = threadIdx.x / 4 % 2;
    asm volatile("sured.b.OP.2d.TYPE.trap [%0, {%1, %2}], %3;"
                 :: "l"(s), "r"(x), "r"(y), "r"(values[threadIdx.x]) : "memory");
}
"""


@pytest.mark.parametrize(
    ("op", "kind", "combine"),
    [
        ("add", "u32", np.add),
        ("add", "s32", np.add),
        ("min", "s32", np.minimum),
        ("max", "s32", np.maximum),
        ("and", "b32", np.bitwise_and),
        ("or", "b32", np.bitwise_or),
    ],
)
def test_reductions(op, kind, combine):
    rng = np.random.default_rng(3)
    start = rng.integers(-50, 50, (2, 4)).astype(np.int32)
    values = rng.integers(-50, 50, 64).astype(np.int32)
    array = kw.CudaArray(start.shape, "int32", surface=True)
    array.set(start)
    source = REDUCE.replace("OP", op).replace("TYPE", kind)
    kw.kernel(source)[1, 64](kw.Surface(array), kw.asarray(values))
    expected = combine.reduce(np.concatenate([start[None], values.reshape(8, 2, 4)]), axis=0)
    np.testing.assert_array_equal(array.numpy(), expected.astype(np.int32))


FORMATTED = r"""
__global__ void store(cudaSurfaceObject_t s, const int* values) {
    asm volatile("sust.p.2d.v4.b32.trap [%0, {%1, %2}], {%3, %4, %5, %6};"
                 :: "l"(s), "r"(2), "r"(1), "r"(values[0]), "r"(values[1]), "r"(values[2]),
                    "r"(values[3]) : "memory");
}
"""


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "float16", "float32"])
def test_formatted_stores(dtype):
    """The lowest coordinate counts elements and values take the array's format."""
    array = kw.CudaArray((3, 4), dtype, channels=4, surface=True)
    array.set(np.zeros((3, 4, 4), dtype))
    values = np.array([1, 2, 3, 100], np.int32)
    given = values.astype(np.float32).view(np.int32) if "float" in dtype else values
    kw.kernel(FORMATTED)[1, 1](kw.Surface(array), kw.asarray(given))
    expected = np.zeros((3, 4, 4), dtype)
    expected[1, 2] = values
    np.testing.assert_array_equal(array.numpy(), expected)


# ---- what the simulated device finds


def fault(call):
    with pytest.raises(kw.DeviceFault) as caught:
        call()
        kw.current_device().synchronize()
    return caught.value


def test_what_traps_outside(sim):
    array = kw.CudaArray((5, 8), surface=True)
    surface, out = kw.Surface(array), kw.zeros(1, dtype="float32")
    for x, y, text in (
        (8, 0, "x = 32 bytes, y = 0"),
        (-1, 0, "x = -4 bytes, y = 0"),
        (0, 5, "x = 0 bytes, y = 5"),
    ):
        places = [np.array([v]) for v in (x, y, 0)]
        found = fault(lambda at=places: run(READ, surface, "2d", at, out, "float32"))
        assert found.kind == "bounds"
        assert found.line == 7
        assert f"surface read of 4 bytes at {text}, outside a 2-D array of (5, 8)" in str(found)
    layered = kw.Surface(kw.CudaArray((3, 9), layered=True, surface=True))
    places = [np.array([v]) for v in (0, 0, 3)]
    found = fault(lambda: run(WRITE, layered, "layered 1d", places, out, "float32"))
    assert "surface write of 4 bytes at x = 0 bytes, layer 3" in str(found)


def test_bytes_that_are_not_aligned(sim):
    source = r"""
    __global__ void read(cudaSurfaceObject_t s, float* out) { out[0] = surf1Dread<float>(s, 2); }"""
    surface = kw.Surface(kw.CudaArray((8,), surface=True))
    found = fault(lambda: kw.kernel(source)[1, 1](surface, kw.zeros(1, dtype="float32")))
    assert found.kind == "alignment"
    assert "x = 2 bytes, which is not a multiple of 4" in str(found)


def test_races_on_surfaces(sim):
    source = r"""
    __global__ void race(cudaSurfaceObject_t s) { surf1Dwrite((int)threadIdx.x, s, 0); }"""
    surface = kw.Surface(kw.CudaArray((8,), "int32", surface=True))
    with kw.checks("race") as report:
        kw.kernel(source)[1, 64](surface)
        kw.current_device().synchronize()
    assert [finding.kind for finding in report.findings] == ["race"]
    assert report.findings[0].line == 2


def test_reductions_do_not_race(sim):
    array = kw.CudaArray((2, 4), "int32", surface=True)
    array.set(np.zeros((2, 4), np.int32))
    source = REDUCE.replace("OP", "add").replace("TYPE", "u32")
    with kw.checks("race") as report:
        kw.kernel(source)[4, 64](kw.Surface(array), kw.ones(64, dtype="int32"))
        kw.current_device().synchronize()
    assert not report.findings
    np.testing.assert_array_equal(array.numpy(), 32)
