"""The types of CUDA arrays, textures and surfaces in the extension module; `_core` has them."""

from collections.abc import Sequence
from typing import Any, Literal, SupportsFloat, SupportsIndex, final

import numpy as np

from kernwright._core import Device
from kernwright._core_array import Array

_Mode = Literal["clamp", "border", "wrap", "mirror"]
_Border = SupportsFloat | SupportsIndex

@final
class CudaArray:
    """Memory in the device's own order, for textures and surfaces.

    `shape` is that of a NumPy array, width last: (width,), (height, width) or (depth, height,
    width). With `layered` the first axis counts layers: (layers, width) or (layers, height, width).
    With `cubemap` it counts faces, 6 of them or with `layered` 6 for each layer, in the order +x,
    -x, +y, -y, +z, -z. An element has 1, 2 or 4 `channels` of `dtype`: integers of 8 to 32 bits,
    float16 or float32; values then have one axis more, the channels.

    `surface` lets surfaces be made of it, `gather` tex2Dgather read it (2-D alone). What the device
    or the driver does not take raises InvalidArgument with the rule and the values; no memory
    raises OutOfMemory. The memory is uninitialised at first.

    It lives as long as a texture or surface over it, and until their queued work is done. Dropping
    the last reference waits for that work. It may be used from any thread; order writes and reads
    of several threads by streams.

    >>> image = kw.CudaArray((480, 640))
    >>> image.set(np.ones((480, 640), np.float32))
    >>> float(image.numpy().sum())
    307200.0
    """

    def __init__(
        self,
        shape: SupportsIndex | Sequence[SupportsIndex],
        dtype: Any = "float32",
        *,
        channels: int = 1,
        layered: bool = False,
        cubemap: bool = False,
        surface: bool = False,
        gather: bool = False,
        device: Device | int | str | None = None,
    ) -> None: ...
    def set(self, values: Any) -> None:
        """Copies `values` into the whole array: a NumPy array, or a contiguous array of the device
        of any library, of this dtype and shape (and an axis of channels).

        Of a NumPy array it returns when the copy is done and raises CaptureError while the current
        stream is captured; of a device array the copy is queued on the current stream.
        """
    def numpy(self) -> np.ndarray[Any, Any]:
        """The values in new host memory; waits for the work before. Raises CaptureError while the
        current stream is captured."""
    def copy_to(self, array: Array) -> None:
        """Queues a copy of the whole array to a contiguous kw.Array of its dtype and shape."""
    @property
    def shape(self) -> tuple[int, ...]:
        """Without the axis of the channels."""
    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of one channel of an element."""
    @property
    def channels(self) -> int:
        """Channels of an element: 1, 2 or 4."""
    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
    @property
    def layered(self) -> bool:
        """Whether the first axis counts layers."""
    @property
    def cubemap(self) -> bool:
        """Whether the first axis counts faces of cubes."""
    @property
    def surface(self) -> bool:
        """Whether surfaces can be made of it."""
    @property
    def gather(self) -> bool:
        """Whether tex2Dgather can read it."""
    @property
    def device(self) -> Device:
        """The device that has the memory."""
    @property
    def handle(self) -> int:
        """The CUarray."""

@final
class Texture:
    """An argument for a parameter `cudaTextureObject_t`: a CudaArray or memory of an array, with
    the rules for sampling it.

    `source` is a kw.CudaArray, or an array of any library on the device. Elements have `channels`
    numbers; several channels are the last axis of the array. One further axis makes linear memory,
    read by tex1Dfetch. Two make pitched memory, read by tex2D; its rows must be a multiple of 32
    bytes apart. Its address must be a multiple of 512.

    `address` is what happens outside: "clamp", "border", and with normalized coordinates "wrap" or
    "mirror"; one word, or one for each of x, y and z. `filter` is "point" or "linear", the latter
    for what reads as floats. `normalized` coordinates count from 0 to 1. `read` is "element", or
    "normalized" for integers of 8 or 16 bits as floats of 0 to 1 (-1 to 1). `border` is a number or
    up to 4, one for each channel.

    A broken rule raises InvalidArgument, which names it. The texture keeps its source alive, and
    launches and graphs keep the texture. It may be used from any threads.

    >>> mean = kw.kernel('''
    ... __global__ void mean(cudaTextureObject_t image, float* out) {
    ...     out[0] = tex2D<float>(image, 1.0f, 0.5f);    // halfway between two pixels
    ... }''')
    >>> image, out = kw.CudaArray((1, 2)), kw.empty(1)
    >>> image.set(np.array([[1, 3]], np.float32))
    >>> mean[1, 1](kw.Texture(image, filter="linear"), out)
    >>> float(out[0])
    2.0
    """

    def __init__(
        self,
        source: Any,
        *,
        address: _Mode | Sequence[_Mode] = "clamp",
        filter: Literal["point", "linear"] = "point",
        normalized: bool = False,
        read: Literal["element", "normalized"] = "element",
        border: _Border | Sequence[_Border] = 0,
        channels: int = 1,
    ) -> None: ...
    @property
    def source(self) -> CudaArray | Array:
        """What it reads, and keeps alive."""
    @property
    def address(self) -> tuple[str, str, str]:
        """What happens outside, for each of x, y and z."""
    @property
    def filter(self) -> str:
        """ "point" or "linear"."""
    @property
    def normalized(self) -> bool:
        """Whether coordinates count from 0 to 1."""
    @property
    def read(self) -> str:
        """ "element", or "normalized": integers are read as floats."""
    @property
    def device(self) -> Device:
        """The device that it is for."""
    @property
    def handle(self) -> int:
        """The CUtexObject, for structs that hold one: keep the texture alive beside them."""

@final
class Surface:
    """An argument for a parameter `cudaSurfaceObject_t`. The kernel reads and writes its
    kw.CudaArray, made with `surface=True`. Keeps the array alive, and launches and graphs keep the
    surface.

    >>> fill = kw.kernel('''
    ... __global__ void fill(cudaSurfaceObject_t line) {
    ...     surf1Dwrite(2.0f, line, threadIdx.x * sizeof(float));
    ... }''')
    >>> line = kw.CudaArray(8, surface=True)
    >>> fill[1, 8](kw.Surface(line))
    >>> float(line.numpy().sum())
    16.0
    """

    def __init__(self, source: CudaArray) -> None: ...
    @property
    def source(self) -> CudaArray:
        """What it reads and writes, and keeps alive."""
    @property
    def device(self) -> Device:
        """The device that it is for."""
    @property
    def handle(self) -> int:
        """The CUsurfObject, for structs that hold one: keep the surface alive beside them."""
