"""CUDA arrays and texture objects: copies, ordinary memory, lifetimes, graphs and wrong use."""

import gc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from children import run_child

import kernwright as kw

DTYPES = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "float16", "float32"]

FETCH = r"""
__global__ void fetch(cudaTextureObject_t t, const int* index, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = tex1Dfetch<float>(t, index[i]);
}
"""
READ_2D = r"""
__global__ void read(cudaTextureObject_t t, float* out, int w, int h) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < w * h) out[i] = tex2D<float>(t, i % w + 0.5f, i / w + 0.5f);
}
"""


def aligned(values, pitch=None):
    """A kw.Array of these values at a multiple of 512 bytes, rows `pitch` elements apart."""
    width = values.shape[-1]
    pitch = pitch or width
    rows = values.reshape(-1, width)
    unit = 512 // values.itemsize
    room = kw.zeros(len(rows) * pitch + unit, dtype=values.dtype)
    begin = (-room.ptr % 512) // values.itemsize
    place = room[begin : begin + len(rows) * pitch].reshape(len(rows), pitch)[:, :width]
    place[...] = kw.asarray(np.ascontiguousarray(rows))
    return place if values.ndim > 1 else place.reshape(width)


def read_2d(texture, shape, stream=None):
    out = kw.zeros(shape, dtype="float32")
    count = shape[0] * shape[1]
    kw.kernel(READ_2D)[-(-count // 128), 128, stream](texture, out, shape[1], shape[0])
    return out


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ((5,), {}),
        ((3, 5), {}),
        ((2, 3, 5), {}),
        ((4, 5), {"layered": True}),
        ((4, 3, 5), {"layered": True}),
        ((6, 3, 3), {"cubemap": True}),
        ((12, 3, 3), {"cubemap": True, "layered": True}),
    ],
)
def test_values_come_back(shape, options, dtype):
    for channels in (1, 2, 4):
        whole = (*shape, channels) if channels > 1 else shape
        values = np.arange(np.prod(whole)).reshape(whole).astype(dtype)
        array = kw.CudaArray(shape, dtype, channels=channels, **options)
        assert (array.shape, array.dtype, array.channels) == (shape, np.dtype(dtype), channels)
        assert array.nbytes == values.nbytes
        array.set(values[::-1])
        np.testing.assert_array_equal(array.numpy(), values[::-1])
        array.set(kw.asarray(values))
        np.testing.assert_array_equal(array.numpy(), values)
        out = kw.zeros(whole, dtype=dtype)
        array.copy_to(out)
        np.testing.assert_array_equal(out.numpy(), values)


def test_what_a_description_says(device):
    array = kw.CudaArray((4, 6), "uint8", channels=4, surface=True)
    assert "2-D array of (4, 6) elements, 4 x uint8" in repr(array)
    assert (array.surface, array.gather) == (True, False)
    assert (array.layered, array.cubemap) == (False, False)
    assert array.device == device
    texture = kw.Texture(array, filter="point")
    assert "texture over a 2-D array" in repr(texture)
    assert texture.handle != kw.Texture(array).handle
    assert texture.source.handle == array.handle
    assert (texture.filter, texture.normalized, texture.read) == ("point", False, "element")
    assert "surface over a 2-D array" in repr(kw.Surface(array))


def test_linear_memory():
    values = np.arange(1000, dtype=np.float32) / 3
    index = np.array([0, 1, 999, 500, 1000, -1, 1 << 30, -(1 << 31)], np.int32)
    texture = kw.Texture(aligned(values))
    out = kw.zeros(8, dtype="float32")
    kw.kernel(FETCH)[1, 32](texture, kw.asarray(index), out, 8)
    # What lies outside reads as zero.
    np.testing.assert_array_equal(out.numpy(), [*values[index[:4]], 0, 0, 0, 0])


def test_linear_memory_of_vectors():
    values = np.arange(64 * 4, dtype=np.uint8).reshape(64, 4)
    source = r"""
    __global__ void fetch(cudaTextureObject_t t, uchar4* out) {
        out[threadIdx.x] = tex1Dfetch<uchar4>(t, threadIdx.x);
    }"""
    place = aligned(values.reshape(-1)).reshape(64, 4)
    out = kw.zeros((64, 4), dtype="uint8")
    kw.kernel(source)[1, 64](kw.Texture(place, channels=4), out)
    np.testing.assert_array_equal(out.numpy(), values)


@pytest.mark.parametrize("width", [8, 11])
def test_pitched_memory(width):
    values = np.arange(6 * width, dtype=np.float32).reshape(6, width)
    texture = kw.Texture(aligned(values, pitch=16))
    np.testing.assert_array_equal(read_2d(texture, values.shape).numpy(), values)
    assert texture.source.shape == values.shape


def test_pitched_memory_follows_its_array():
    values = np.arange(32, dtype=np.float32).reshape(4, 8)
    place = aligned(values)
    texture = kw.Texture(place, filter="linear", normalized=True, address="wrap")
    source = r"""
    __global__ void read(cudaTextureObject_t t, float* out) {
        out[0] = tex2D<float>(t, 1.0625f, 0.125f);
    }"""
    out = kw.zeros(1, dtype="float32")
    for _ in range(2):
        kw.kernel(source)[1, 1](texture, out)
        assert out.item() == place.numpy()[0, 0]
        place[...] = kw.asarray(place.numpy() + 1)


def test_a_texture_may_be_dropped_after_its_launch():
    values = np.arange(24, dtype=np.float32).reshape(4, 6)
    stream = kw.Stream()
    results = []
    with stream:
        for i in range(20):
            array = kw.CudaArray(values.shape)
            array.set(values + i)
            results.append(read_2d(kw.Texture(array), values.shape, stream))
            del array
    gc.collect()
    for i, result in enumerate(results):
        np.testing.assert_array_equal(result.numpy(), values + i)


def test_a_texture_keeps_its_source():
    values = np.arange(24, dtype=np.float32).reshape(4, 6)
    array = kw.CudaArray(values.shape)
    array.set(values)
    textures = [kw.Texture(array), kw.Texture(aligned(values, pitch=8))]
    del array
    gc.collect()
    for texture in textures:
        np.testing.assert_array_equal(read_2d(texture, values.shape).numpy(), values)


def test_a_graph_keeps_textures_and_copies():
    values = np.arange(24, dtype=np.float32).reshape(4, 6)
    read = kw.kernel(READ_2D)
    read.compile()
    stream, graph = kw.Stream(), kw.Graph()
    array = kw.CudaArray(values.shape)
    source, out = kw.asarray(values), kw.zeros(values.shape, dtype="float32")
    texture = kw.Texture(array)
    kw.current_device().synchronize()
    with stream, graph.capture(stream):
        array.set(source)
        read[1, 32, stream](texture, out, 6, 4)
    assert graph.node_count == 2
    del texture, array
    gc.collect()
    for i in range(2):
        source[...] = kw.asarray(values + i)
        kw.current_device().synchronize()
        graph.launch(stream)
        stream.synchronize()
        np.testing.assert_array_equal(out.numpy(), source.numpy())


def test_a_graph_keeps_what_it_copies():
    values = np.arange(24, dtype=np.float32).reshape(4, 6)
    stream, graph = kw.Stream(), kw.Graph()
    array = kw.CudaArray(values.shape)
    source, out = kw.asarray(values), kw.zeros(values.shape, dtype="float32")
    kw.current_device().synchronize()
    with stream, graph.capture(stream):
        array.set(source)
        array.copy_to(out)
    del array, source
    gc.collect()
    graph.launch(stream)
    stream.synchronize()
    np.testing.assert_array_equal(out.numpy(), values)


def test_a_capture_refuses_host_copies_and_takes_new_objects():
    stream, graph = kw.Stream(), kw.Graph()
    with stream, graph.capture(stream):
        array = kw.CudaArray((4, 6))
        kw.Texture(array)
        with pytest.raises(kw.CaptureError):
            array.set(np.zeros((4, 6), np.float32))
        with pytest.raises(kw.CaptureError):
            array.numpy()
    assert graph.node_count == 0


def test_handles_as_numbers():
    """In structs and as plain integers, while the texture lives."""
    values = np.arange(24, dtype=np.float32).reshape(4, 6)
    array = kw.CudaArray(values.shape)
    array.set(values)
    texture = kw.Texture(array)
    np.testing.assert_array_equal(read_2d(texture.handle, values.shape).numpy(), values)


SIZES = r"""
__global__ void sizes(cudaTextureObject_t t, cudaSurfaceObject_t s, int* out) {
    asm volatile("txq.width.b32 %0, [%1];" : "=r"(out[0]) : "l"(t));
    asm volatile("txq.height.b32 %0, [%1];" : "=r"(out[1]) : "l"(t));
    asm volatile("txq.level.width.b32 %0, [%1], 0;" : "=r"(out[2]) : "l"(t));
    asm volatile("suq.width.b32 %0, [%1];" : "=r"(out[3]) : "l"(s));
    asm volatile("suq.height.b32 %0, [%1];" : "=r"(out[4]) : "l"(s));
}
"""


def test_queries():
    array = kw.CudaArray((5, 9), surface=True)
    out = kw.zeros(5, dtype="int32")
    kw.kernel(SIZES)[1, 1](kw.Texture(array), kw.Surface(array), out)
    assert out.numpy().tolist() == [9, 5, 9, 9, 5]


INLINE = r"""
__global__ void read(cudaTextureObject_t t, float* f, unsigned short* h, unsigned* pairs,
                     int* there) {
    asm volatile("{.reg .pred p; tex.2d.v4.f32.f32 {%0,_,_,%1}|p, [%3,{%4,%5}]; "
                 "selp.s32 %2, 1, 0, p;}"
                 : "=f"(f[0]), "=f"(f[1]), "=r"(there[0]) : "l"(t), "f"(1.5f), "f"(0.5f));
    asm volatile("tex.2d.v4.f32.f32 {%0,_,_,_}, [%1,{%2,%3}], {1,-1};"
                 : "=f"(f[2]) : "l"(t), "f"(1.5f), "f"(1.5f));
    asm volatile("tex.2d.v4.f16.f32 {%0,_,_,%1}, [%2,{%3,%4}];"
                 : "=h"(h[0]), "=h"(h[1]) : "l"(t), "f"(1.5f), "f"(0.5f));
    asm volatile("tex.2d.v2.f16x2.f32 {%0,%1}, [%2,{%3,%4}];"
                 : "=r"(pairs[0]), "=r"(pairs[1]) : "l"(t), "f"(1.5f), "f"(0.5f));
    asm volatile("tex.2d.v4.f32.s32 {%0,_,_,_}, [%1,{%2,%3}];"
                 : "=f"(f[3]) : "l"(t), "r"(2), "r"(1));
}
"""


def test_forms_that_only_ptx_has():
    """Predicates, offsets, halves, integer coordinates; channels that are missing are 0."""
    values = np.arange(24, dtype=np.float32).reshape(4, 6)
    array = kw.CudaArray(values.shape)
    array.set(values)
    out = [kw.zeros(4, dtype=t) for t in ("float32", "uint16", "uint32", "int32")]
    kw.kernel(INLINE)[1, 1](kw.Texture(array), *out)
    floats, halves, pairs, there = (x.numpy() for x in out)
    assert floats.tolist() == [1, 0, 2, 8]
    assert halves[:2].view("f2").tolist() == [1, 0]
    assert pairs[:2].view("f2").tolist() == [1, 0, 0, 0]
    assert there[0] == 1


# ---- wrong use


def refused(match, call):
    with pytest.raises(kw.InvalidArgument, match=match):
        call()


def test_arrays_that_cannot_be_made(device):
    new = kw.CudaArray
    refused("1 to 3 axes, not 4", lambda: new((2, 2, 2, 2)))
    refused("1 to 3 axes, not 0", lambda: new(()))
    refused("extent of 0 is below 1", lambda: new((4, 0)))
    refused("1, 2 or 4 channels, not 3", lambda: new((4,), channels=3))
    refused("no elements of float64", lambda: new((4,), "float64"))
    refused("no elements of int64", lambda: new((4,), "int64"))
    refused("a cubemap has 3 axes, not 2", lambda: new((6, 4), cubemap=True))
    refused("six faces, not 5", lambda: new((5, 4, 4), cubemap=True))
    refused("six faces a layer, not 8", lambda: new((8, 4, 4), cubemap=True, layered=True))
    refused("squares, not 4 by 5", lambda: new((6, 5, 4), cubemap=True))
    refused("2 or 3 axes, not 1", lambda: new((4,), layered=True))
    refused("gather is for 2-D arrays", lambda: new((4,), gather=True))
    refused("above the device's limit", lambda: new((1 << 20,)))
    with pytest.raises(kw.ArgumentError):
        new("seven")


def test_textures_that_cannot_be_made():
    floats, bytes4 = kw.CudaArray((4, 6)), kw.CudaArray((4, 6), "uint8", channels=4)
    new = kw.Texture
    refused("no address mode 'repeat'", lambda: new(floats, address="repeat"))
    refused("no filter 'cubic'", lambda: new(floats, filter="cubic"))
    refused("no way to read", lambda: new(floats, read="float"))
    refused("wrap and mirror need normalized", lambda: new(floats, address="wrap"))
    refused("1 to 3 words, not 4", lambda: new(floats, address=("clamp",) * 4))
    refused("integers cannot be filtered", lambda: new(bytes4, filter="linear"))
    refused("8 or 16 bits alone", lambda: new(floats, read="normalized"))
    refused("4 numbers, not 5", lambda: new(floats, border=(0,) * 5))
    refused("4 numbers, not 0", lambda: new(floats, border=()))
    refused("1, 2 or 4 channels, not -1", lambda: new(bytes4, channels=-1))
    refused("1, 2 or 4 channels, not 3", lambda: kw.CudaArray((4, 6), channels=3))
    refused("does not have 2 channels", lambda: new(bytes4, channels=2))
    refused("not made for surfaces", lambda: kw.Surface(floats))
    with pytest.raises(kw.ArgumentError, match=r"kw\.asarray"):
        new(np.zeros((4, 6), np.float32))
    with pytest.raises(kw.ArgumentError, match="an int, got float"):
        new(bytes4, border=0.5)
    for border in (2**70, 2**32, -(2**31) - 1):
        with pytest.raises(kw.ArgumentRangeError, match="32 bits"):
            new(bytes4, border=border)
    for border in ("red", None, (0.5, "red")):
        with pytest.raises(kw.ArgumentError, match="the border is a number"):
            new(floats, border=border)
    with pytest.raises(kw.ArgumentError, match=r"kw\.Surface wants a kw\.CudaArray"):
        kw.Surface(kw.zeros((4, 6)))


def test_memory_that_no_texture_can_read():
    values = np.zeros((4, 16), np.float32)
    place = aligned(values)
    new = kw.Texture
    refused("no multiple of 512", lambda: new(place[:, 1:]))
    refused("pitch of 28 bytes is no multiple", lambda: new(aligned(values[:, :7])))
    refused("do not follow each other", lambda: new(place[:, ::2]))
    refused("1 or 2 axes", lambda: new(place.reshape(2, 2, 16)))
    refused("their? last axis|last axis", lambda: new(place, channels=4))
    refused("neither filters", lambda: new(aligned(values.reshape(-1)), filter="linear"))
    refused("neither filters", lambda: new(aligned(values.reshape(-1)), normalized=True))
    refused("at least one element", lambda: new(kw.zeros(0, dtype="float32")))
    refused("no elements of float64", lambda: new(kw.zeros((4, 64), dtype="float64")))


def test_values_that_do_not_fit():
    array = kw.CudaArray((4, 6))
    refused(
        r"shape \(4, 6\), got one of float32 of shape \(6, 4\)",
        lambda: array.set(np.zeros((6, 4), np.float32)),
    )
    refused("got one of float64", lambda: array.set(np.zeros((4, 6))))
    refused("not contiguous", lambda: array.set(kw.zeros((6, 4), dtype="float32").T))
    refused("shape", lambda: array.copy_to(kw.zeros((4, 7), dtype="float32")))
    with pytest.raises(kw.ArgumentError, match="wants a NumPy array"):
        array.set([1, 2])
    with pytest.raises(kw.ArgumentError, match=r"wants a kw\.Array"):
        array.copy_to(np.zeros((4, 6), np.float32))


def test_textures_for_other_parameters(saxpy):
    texture = kw.Texture(kw.CudaArray((4, 6)))
    x = kw.zeros(4, dtype="float32")
    with pytest.raises(kw.ArgumentError, match="parameter 2"):
        saxpy[1, 4](1.0, texture, x, 4)
    with pytest.raises(kw.ArgumentError, match="parameter 4"):
        saxpy[1, 4](1.0, x, x, texture)
    with pytest.raises(kw.ArgumentError, match="parameter 1"):
        read_2d("texture", (4, 6))


TWO_DEVICES = r"""
import numpy as np, kernwright as kw
fetch = kw.kernel("__global__ void fetch(cudaTextureObject_t t, float* out) {"
                  " out[0] = tex1D<float>(t, 0.5f); }")
with kw.Device("sim:1"):
    array = kw.CudaArray((4,))
    texture = kw.Texture(array)
for call in (lambda: fetch[1, 1](texture, kw.zeros(1, dtype="float32")),
             lambda: array.set(kw.zeros(4, dtype="float32"))):
    try:
        call()
    except (kw.ArgumentError, kw.InvalidArgument) as error:
        print("sim:1" in str(error) and "sim:0" in str(error))
"""


def test_textures_of_another_device():
    ended = run_child(TWO_DEVICES, KERNWRIGHT_DEVICE="sim", KERNWRIGHT_SIM_DEVICES="2")
    assert (ended.code, ended.out, ended.err) == (0, "True\nTrue\n", "")


def test_threads_make_and_drop_textures():
    values = np.arange(24, dtype=np.float32).reshape(4, 6)
    read = kw.kernel(READ_2D)
    read.compile()

    def work(number):
        stream, wrong = kw.Stream(), 0
        with stream:
            for i in range(25):
                array = kw.CudaArray(values.shape)
                array.set(values * number + i)
                out = read_2d(kw.Texture(array), values.shape, stream)
                wrong += not np.array_equal(out.numpy(), values * number + i)
        return wrong

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(4))) == [0] * 4


# ---- what the simulated device finds


def fault(call):
    with pytest.raises(kw.DeviceFault) as caught:
        call()
        kw.current_device().synchronize()
    return caught.value


def test_handles_of_nothing(sim):
    array = kw.CudaArray((4, 6), surface=True)
    texture, surface = kw.Texture(array), kw.Surface(array)
    gone = texture.handle
    found = fault(lambda: read_2d(12345, (4, 6)))
    assert (found.kind, found.line) == ("bounds", 4)
    assert "0x3039 is no texture object" in str(found)
    found = fault(lambda: read_2d(surface, (4, 6)))
    assert "is a surface object, not a texture object" in str(found)
    del texture
    gc.collect()
    found = fault(lambda: read_2d(gone, (4, 6)))
    assert found.kind == "use-after-free"
    assert "was destroyed" in str(found)


def test_accesses_of_another_geometry(sim):
    found = fault(lambda: read_2d(kw.Texture(kw.CudaArray((24,))), (4, 6)))
    assert "geometry .2d to a 1-D array of (24) elements" in str(found)
    source = "__global__ void k(cudaTextureObject_t t, float* o) { o[0] = tex1D<float>(t, 0.5f); }"
    linear = kw.Texture(aligned(np.zeros(32, np.float32)))
    found = fault(lambda: kw.kernel(source)[1, 1](linear, kw.zeros(1, dtype="float32")))
    assert "integer coordinates alone (tex1Dfetch)" in str(found)
    source = r"""
    __global__ void k(cudaTextureObject_t t, float* o) {
        o[0] = tex2Dgather<float4>(t, 0.5f, 0.5f).x;
    }"""
    plain = kw.Texture(kw.CudaArray((4, 6)))
    found = fault(lambda: kw.kernel(source)[1, 1](plain, kw.zeros(1, dtype="float32")))
    assert "not made for it" in str(found)


def test_a_texture_keeps_memory_of_no_pool(sim):
    with kw.memory.use(kw.memory.DeviceResource()):
        own = kw.ones(1024, dtype="float32")
        texture = kw.Texture(own)
    del own
    gc.collect()
    out = kw.zeros(8, dtype="float32")
    kw.kernel(FETCH)[1, 32](texture, kw.asarray(np.arange(8, dtype=np.int32)), out, 8)
    np.testing.assert_array_equal(out.numpy(), 1)


def test_uninitialised_texels(sim):
    with kw.checks("init") as report:
        array = kw.CudaArray((4, 6))
        read_2d(kw.Texture(array), (4, 6))
        kw.current_device().synchronize()
    assert [finding.kind for finding in report.findings] == ["init"]
    assert report.findings[0].line == 4
