"""Textures: every geometry, filter, address mode and format against a model in float64.

The same on a simulated device and on a GPU. Point sampling and integers are compared exactly. A GPU
may round the weights of a linear filter otherwise than to the nearest 1/256, which is not
documented: there each weight may be 1/256 off.
"""

import numpy as np
import pytest
from texture_model import Model, promoted

import kernwright as kw

MODES = ("clamp", "border", "wrap", "mirror")
# name: axes of a value's shape, coordinates' axes, options of the array, the call
GEOMETRIES = {
    "1d": ((13,), 1, {}, "tex1D<VALUE>(t, x[i])"),
    "2d": ((5, 8), 2, {}, "tex2D<VALUE>(t, x[i], y[i])"),
    "3d": ((3, 4, 7), 3, {}, "tex3D<VALUE>(t, x[i], y[i], z[i])"),
    "layered 1d": ((3, 9), 1, {"layered": True}, "tex1DLayered<VALUE>(t, x[i], layer[i])"),
    "layered 2d": ((4, 5, 6), 2, {"layered": True}, "tex2DLayered<VALUE>(t, x[i], y[i], layer[i])"),
    "cube": ((6, 4, 4), 2, {"cubemap": True}, "texCubemap<VALUE>(t, x[i], y[i], z[i])"),
    "layered cube": (
        (12, 5, 5),
        2,
        {"cubemap": True, "layered": True},
        "texCubemapLayered<VALUE>(t, x[i], y[i], z[i], layer[i])",
    ),
}
NAMES = {
    "uint8": ("unsigned char", "uchar"),
    "int8": ("signed char", "char"),
    "uint16": ("unsigned short", "ushort"),
    "int16": ("short", "short"),
    "uint32": ("unsigned int", "uint"),
    "int32": ("int", "int"),
    "float32": ("float", "float"),
}
SOURCE = r"""
__global__ void fetch(cudaTextureObject_t t, const float* x, const float* y, const float* z,
                      const int* layer, VALUE* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = FETCH;
}
"""
N = 4000


def value_name(dtype, channels):
    scalar, vector = NAMES[dtype]
    return scalar if channels == 1 else f"{vector}{channels}"


def fetched(texture, call, coordinates, dtype="float32", channels=1):
    kernel = kw.kernel(SOURCE, defines={"FETCH": call, "VALUE": value_name(dtype, channels)})
    x, y, z, layer = coordinates
    out = kw.zeros((len(x), channels), dtype=dtype)
    arrays = [kw.asarray(np.ascontiguousarray(v, np.float32)) for v in (x, y, z)]
    layers = kw.asarray(np.ascontiguousarray(layer, np.int32))
    kernel[-(-len(x) // 128), 128](texture, *arrays, layers, out, len(x))
    return out.numpy()


def random_values(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "f":
        return rng.uniform(-4, 4, shape).astype(dtype)
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)


def made(values, channels=1, **options):
    shape = values.shape[: values.ndim - (channels != 1)]
    array = kw.CudaArray(shape, values.dtype, channels=channels, **options)
    array.set(values)
    return array


def five_axes(values, geometry, channels=1):
    """(layers, depth, height, width, channels)"""
    shape, axes, options, _ = GEOMETRIES[geometry]
    layers = values.shape[0] if options else 1
    inner = values.shape[1 if options else 0 : len(shape)]
    inner = (1,) * (3 - axes) + inner
    return values.reshape(layers, *inner, channels)


def coordinates_of(geometry, normalized, filter, seed=1, reach=1.7):
    """Places inside and outside, none so near a border between texels that rounding decides."""
    rng = np.random.default_rng(seed)
    shape, axes, options, _ = GEOMETRIES[geometry]
    if "cube" in geometry:
        x, y, z = directions(rng, shape[-1])
        return x, y, z, rng.integers(0, shape[0] // 6, N)
    result = []
    for extent in (shape[::-1][:axes] + (1, 1))[:3]:
        texels = rng.integers(-int(extent * reach), int(extent * (1 + reach)), N)
        inner = rng.uniform(0.02, 0.98, N)
        if filter == "linear":  # in sixteenths, so that weights are exact, and one in between
            inner = np.where(rng.random(N) < 0.5, np.round(inner * 16) / 16, inner)
        place = texels + inner
        result.append((place / extent if normalized else place).astype(np.float32))
    layers = shape[0] if options else 1
    return (*result, rng.integers(0, layers, N))


def directions(rng, extent):
    """Directions that meet a face well inside a texel and away from the cube's edges."""
    face = rng.integers(0, 6, N)
    texels = rng.integers(0, extent, (2, N)) + rng.uniform(0.05, 0.95, (2, N))
    s, t = 2 * texels / extent - 1
    one = np.ones(N)
    table = [(one, -t, -s), (-one, -t, s), (s, one, t), (s, -one, -t), (s, -t, one), (-s, -t, -one)]
    m = rng.uniform(0.5, 3, N)
    chosen = [np.choose(face, [row[k] for row in table]) for k in range(3)]
    return tuple((axis * m).astype(np.float32) for axis in chosen)


def tolerance(device, filter, values, axes):
    if filter == "point":
        return 0
    spread = float(np.ptp(values.astype(np.float64)))
    return 2e-6 * spread if device.is_simulated else axes * spread / 256


@pytest.mark.parametrize("filter", ["point", "linear"])
@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_every_mode(device, geometry, filter):
    shape, axes, options, call = GEOMETRIES[geometry]
    values = random_values(shape, "float32")
    array = made(values, **options)
    for normalized in (False, True):
        # Without normalized coordinates there is nothing to wrap or mirror.
        modes = MODES if normalized else MODES[:2]
        if "cube" in geometry:
            modes = ("clamp",)
        for mode in modes:
            settings = {"address": mode, "filter": filter, "normalized": normalized}
            texture = kw.Texture(array, border=2.5, **settings)
            model = Model(
                five_axes(values, geometry), axes, border=2.5, cube="cube" in geometry, **settings
            )
            at = coordinates_of(geometry, normalized, filter)
            result = fetched(texture, call, at)
            expected = model.fetch(*at).astype(np.float32)
            limit = tolerance(device, filter, values, axes)
            np.testing.assert_allclose(result, expected, rtol=0, atol=limit, err_msg=str(settings))


def test_modes_by_axis(device):
    values = random_values((3, 4, 7), "float32")
    address = ("wrap", "border", "mirror")
    texture = kw.Texture(made(values), address=address, normalized=True, border=-9)
    assert texture.address == address
    at = coordinates_of("3d", True, "point")
    model = Model(
        five_axes(values, "3d"), 3, filter="point", normalized=True, address=address, border=-9
    )
    np.testing.assert_array_equal(fetched(texture, GEOMETRIES["3d"][3], at), model.fetch(*at))


@pytest.mark.parametrize("channels", [1, 2, 4])
@pytest.mark.parametrize("dtype", NAMES)
def test_every_format(dtype, channels):
    values = random_values((5, 8, channels) if channels > 1 else (5, 8), dtype)
    at = coordinates_of("2d", False, "point")
    texture = kw.Texture(made(values, channels))
    result = fetched(texture, GEOMETRIES["2d"][3], at, dtype, channels)
    model = Model(five_axes(values, "2d", channels), 2, filter="point", normalized=False)
    np.testing.assert_array_equal(result, model.fetch(*at).astype(dtype))


@pytest.mark.parametrize("channels", [1, 2, 4])
@pytest.mark.parametrize("filter", ["point", "linear"])
def test_half_reads_as_float(device, filter, channels):
    values = random_values((5, 8, channels) if channels > 1 else (5, 8), "float16")
    at = coordinates_of("2d", False, filter)
    texture = kw.Texture(made(values, channels), filter=filter)
    result = fetched(texture, GEOMETRIES["2d"][3], at, "float32", channels)
    model = Model(five_axes(values, "2d", channels), 2, filter=filter, normalized=False)
    limit = tolerance(device, filter, values, 2)
    np.testing.assert_allclose(result, model.fetch(*at), rtol=0, atol=limit)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16"])
@pytest.mark.parametrize("filter", ["point", "linear"])
def test_normalized_floats(device, filter, dtype):
    values = random_values((5, 8, 4), dtype)
    values[0, 0] = np.iinfo(dtype).min, np.iinfo(dtype).max, 0, 1
    at = coordinates_of("2d", True, filter)
    settings = {"filter": filter, "normalized": True, "address": "wrap"}
    texture = kw.Texture(made(values, 4), read="normalized", **settings)
    assert texture.read == "normalized"
    result = fetched(texture, GEOMETRIES["2d"][3], at, "float32", 4)
    model = Model(five_axes(promoted(values), "2d", 4), 2, **settings)
    limit = max(tolerance(device, filter, promoted(values), 2), 1e-6)
    np.testing.assert_allclose(result, model.fetch(*at), rtol=0, atol=limit)


F2 = "make_float2(0.1f, 0), make_float2(0, 0.1f)"
F4 = "make_float4(0, 0, 0, 0), make_float4(0, 0, 0, 0)"
LEVELS = {
    "1d": ["tex1DLod<VALUE>(t, x[i], 0.0f)", "tex1DGrad<VALUE>(t, x[i], 0.25f, 0.5f)"],
    "2d": ["tex2DLod<VALUE>(t, x[i], y[i], 0.0f)", f"tex2DGrad<VALUE>(t, x[i], y[i], {F2})"],
    "3d": [
        "tex3DLod<VALUE>(t, x[i], y[i], z[i], 0.0f)",
        f"tex3DGrad<VALUE>(t, x[i], y[i], z[i], {F4})",
    ],
    "layered 1d": [
        "tex1DLayeredLod<VALUE>(t, x[i], layer[i], 0.0f)",
        "tex1DLayeredGrad<VALUE>(t, x[i], layer[i], 0.25f, 0.5f)",
    ],
    "layered 2d": [
        "tex2DLayeredLod<VALUE>(t, x[i], y[i], layer[i], 0.0f)",
        f"tex2DLayeredGrad<VALUE>(t, x[i], y[i], layer[i], {F2})",
    ],
    "cube": [
        "texCubemapLod<VALUE>(t, x[i], y[i], z[i], 0.0f)",
        f"texCubemapGrad<VALUE>(t, x[i], y[i], z[i], {F4})",
    ],
    "layered cube": [
        "texCubemapLayeredLod<VALUE>(t, x[i], y[i], z[i], layer[i], 0.0f)",
        f"texCubemapLayeredGrad<VALUE>(t, x[i], y[i], z[i], layer[i], {F4})",
    ],
}


@pytest.mark.parametrize("geometry", LEVELS)
def test_levels_and_gradients_choose_the_one_level(geometry):
    shape, _, options, plain = GEOMETRIES[geometry]
    texture = kw.Texture(made(random_values(shape, "float32"), **options), normalized=True)
    at = coordinates_of(geometry, True, "point")
    expected = fetched(texture, plain, at)
    for call in LEVELS[geometry]:
        np.testing.assert_array_equal(fetched(texture, call, at), expected, err_msg=call)


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8"])
def test_gather(dtype):
    values = random_values((5, 8, 4), dtype)
    texture = kw.Texture(made(values, 4, gather=True), address="clamp")
    at = coordinates_of("2d", False, "point")
    model = Model(five_axes(values, "2d", 4), 2, filter="linear", normalized=False)
    for component in range(4):
        call = f"tex2Dgather<VALUE>(t, x[i], y[i], {component})"
        result = fetched(texture, call, at, dtype, 4)
        expected = model.gather(at[0], at[1], component).astype(dtype)
        np.testing.assert_array_equal(result, expected, err_msg=call)


def test_gather_takes_the_rounded_place():
    """The Programming Guide's example: at 2.49805 tex2Dgather() returns texels 2 and 3."""
    values = np.arange(32, dtype=np.float32).reshape(4, 8)
    texture = kw.Texture(made(values, gather=True))
    at = np.array([2.49805]), np.array([1.5]), np.zeros(1), np.zeros(1)
    row = fetched(texture, "tex2Dgather<VALUE>(t, x[i], y[i])", at, "float32", 4)
    np.testing.assert_array_equal(row, [[18, 19, 11, 10]])


def test_borders_between_texels():
    """A place on the border of two texels is the second's; one before is the first's."""
    values = np.arange(8, dtype=np.float32)
    x = np.concatenate([np.arange(9), np.nextafter(np.float32(np.arange(1, 9)), np.float32(0))])
    zero = np.zeros_like(x)
    result = fetched(kw.Texture(made(values)), "tex1D<VALUE>(t, x[i])", (x, zero, zero, zero))
    expected = np.minimum(np.floor(x.astype(np.float32)), 7)
    exact = x.astype(np.float32) == np.floor(x.astype(np.float32))
    np.testing.assert_array_equal(result[exact, 0], expected[exact])


def test_far_and_strange_coordinates():
    """Clamped and bordered textures know infinities and huge numbers; -0 is 0."""
    values = np.arange(1, 9, dtype=np.float32)
    x = np.float32([np.inf, -np.inf, 1e30, -1e30, 3e9, -3e9, -0.0, 0.0])
    at = x, np.zeros(8), np.zeros(8), np.zeros(8)
    call = "tex1D<VALUE>(t, x[i])"
    clamped = fetched(kw.Texture(made(values)), call, at)[:, 0]
    np.testing.assert_array_equal(clamped, [8, 1, 8, 1, 8, 1, 1, 1])
    bordered = fetched(kw.Texture(made(values), address="border", border=7.5), call, at)[:, 0]
    np.testing.assert_array_equal(bordered, [7.5] * 6 + [1, 1])


def test_nan_coordinate_on_the_simulated_device(sim):
    values = np.arange(1, 9, dtype=np.float32)
    at = np.float32([np.nan]), np.zeros(1), np.zeros(1), np.zeros(1)
    assert fetched(kw.Texture(made(values)), "tex1D<VALUE>(t, x[i])", at)[0, 0] == 1


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_infinite_texels(dtype):
    """Read as they are; where only one texel counts, its neighbours do not spoil it."""
    values = np.array([1, np.inf, -np.inf, np.nan, 2, 3], dtype)
    x = np.arange(6) + 0.5
    at = x, np.zeros(6), np.zeros(6), np.zeros(6)
    call = "tex1D<VALUE>(t, x[i])"
    np.testing.assert_array_equal(fetched(kw.Texture(made(values)), call, at)[:, 0], values)


def test_a_texel_without_weight_is_not_read_on_the_simulated_device(sim):
    values = np.array([1, np.nan, 2], np.float32)
    at = np.array([0.5, 2.5]), np.zeros(2), np.zeros(2), np.zeros(2)
    texture = kw.Texture(made(values), filter="linear")
    result = fetched(texture, "tex1D<VALUE>(t, x[i])", at)[:, 0]
    np.testing.assert_array_equal(result, [1, 2])


def test_integer_borders_are_bits():
    values = random_values((5, 8, 4), "int32")
    texture = kw.Texture(made(values, 4), address="border", border=(-1, 2, 1 << 30, -(1 << 31)))
    at = np.array([-3.5]), np.array([0.5]), np.zeros(1), np.zeros(1)
    result = fetched(texture, GEOMETRIES["2d"][3], at, "int32", 4)
    np.testing.assert_array_equal(result, [[-1, 2, 1 << 30, -(1 << 31)]])


def test_one_texel_and_odd_shapes(device):
    for shape in ((1,), (1, 1), (1, 1, 1), (1, 7), (7, 1), (129,)):
        values = random_values(shape, "float32")
        name = f"{len(shape)}d"
        at = [np.linspace(-2, 130, 50, dtype=np.float32) + np.float32(0.013)] * 3 + [np.zeros(50)]
        _, axes, _, call = GEOMETRIES[name]
        for filter in ("point", "linear"):
            texture = kw.Texture(made(values), filter=filter)
            texels = values.reshape((1,) + (1,) * (3 - axes) + shape + (1,))
            model = Model(texels, axes, filter=filter, normalized=False)
            expected = model.fetch(*at[:3], np.zeros(50, int))
            limit = tolerance(device, filter, values, axes)
            np.testing.assert_allclose(fetched(texture, call, at), expected, rtol=0, atol=limit)
