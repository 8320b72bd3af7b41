"""The type of tensor maps in the extension module; `_core` has it."""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, SupportsIndex, final

from kernwright._core import Device
from kernwright._core_array import Array

_Ints = SupportsIndex | Sequence[SupportsIndex]
_Interleave = Literal["none", "16B", "32B"]
_Swizzle = Literal["none", "32B", "64B", "128B"]
_L2Promotion = Literal["none", "64B", "128B", "256B"]
_OobFill = Literal["none", "nan_request_zero_fma"]

@final
class TensorMap:
    """The descriptor of tensor copies (TMA) for an array, on devices of compute capability 9.0.

    Passed by value to a parameter `const __grid_constant__ CUtensorMap map`. `box_dim` and all
    that counts axes are in the order of the array's axes; coordinates in the kernel are in the
    opposite one. Keeps its array alive. `bytes(map)` are the 128 bytes.

    With an `interleave` the array's last axis is a slice of channels of 16 or 32 bytes and its
    second one counts the slices: N, C/8, H, W, 8. A copy takes one of them, so that `box_dim` has
    1 there, and whole slices; the kernel's coordinates are those of W, H, C/8 and N.

    A broken rule of the driver raises InvalidArgument with the rule and the values.

    >>> x = kw.zeros((100, 200))
    >>> tiles = kw.TensorMap(x, (32, 32), swizzle="128B")    # goes into a launch as an argument
    >>> tiles.shape, tiles.box_bytes
    ((100, 200), 4096)
    """

    def __init__(
        self,
        array: Any,
        box_dim: _Ints,
        *,
        element_strides: _Ints | None = None,
        data_type: Any = None,
        interleave: _Interleave = "none",
        swizzle: _Swizzle = "none",
        l2_promotion: _L2Promotion = "none",
        oob_fill: _OobFill = "none",
        shape: _Ints | None = None,
        strides: _Ints | None = None,
    ) -> None:
        """Of boxes of `box_dim` elements of `array`: one of any library on the device, or a
        kw.Pointer with `shape` and, unless it has no gaps, `strides` in bytes.

        `data_type` is taken from the array; "tfloat32", "tfloat32_ftz" and "float32_ftz" round
        elements of float32 as they are loaded.
        """
    @staticmethod
    def im2col(
        array: Any,
        pixel_box_lower_corner: _Ints,
        pixel_box_upper_corner: _Ints,
        channels_per_pixel: SupportsIndex,
        pixels_per_column: SupportsIndex,
        *,
        element_strides: _Ints | None = None,
        data_type: Any = None,
        interleave: _Interleave = "none",
        swizzle: _Swizzle = "none",
        l2_promotion: _L2Promotion = "none",
        oob_fill: _OobFill = "none",
        shape: _Ints | None = None,
        strides: _Ints | None = None,
    ) -> TensorMap:
        """Of im2col columns: `pixels_per_column` pixels of `channels_per_pixel` elements of an
        array with axes N, W, C or N, H, W, C or N, D, H, W, C, or with an `interleave` N, C/8,
        (D, (H,)) W, 8, where a pixel has the 8 channels of a slice.

        The corners bound the pixels that a copy walks over: the first is `lower` from the
        tensor's first pixel, the last `upper` from its last one.
        """
    def replace_address(self, array: Any) -> None:
        """The same map for another array of that shape and strides, or for a kw.Pointer."""
    @property
    def array(self) -> Array | None:
        """What the map describes and keeps alive; None for a kw.Pointer."""
    @property
    def device(self) -> Device:
        """The device of the array."""
    @property
    def address(self) -> int:
        """The device address of the first element."""
    @property
    def shape(self) -> tuple[int, ...]:
        """The extents of the tensor, in the order of the array's axes."""
    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes between elements along each axis, in the order of the array's axes."""
    @property
    def box_dim(self) -> tuple[int, ...] | None:
        """The extents of a box in elements, in the order of the array's axes; None for im2col."""
    @property
    def element_strides(self) -> tuple[int, ...]:
        """Which elements a box takes along each axis: 2 for every second one."""
    @property
    def box_bytes(self) -> int:
        """Bytes of one load into shared memory, for its mbarrier to expect."""
    @property
    def data_type(self) -> str:
        """The type of the elements, in the words of `data_type`."""
    @property
    def interleave(self) -> str:
        """ "none", "16B" or "32B"."""
    @property
    def swizzle(self) -> str:
        """How rows of a box are spread over the banks of shared memory: "none", "32B", "64B" or
        "128B"."""
    @property
    def l2_promotion(self) -> str:
        """How much L2 fetches around a box: "none", "64B", "128B" or "256B"."""
    @property
    def oob_fill(self) -> str:
        """What lies outside of the tensor: "none" for zeros, or "nan_request_zero_fma"."""
    @property
    def pixel_box_lower_corner(self) -> tuple[int, ...] | None:
        """None unless the map is for im2col, as the next three."""
    @property
    def pixel_box_upper_corner(self) -> tuple[int, ...] | None:
        """None unless the map is for im2col."""
    @property
    def channels_per_pixel(self) -> int | None:
        """None unless the map is for im2col."""
    @property
    def pixels_per_column(self) -> int | None:
        """None unless the map is for im2col."""
    def __bytes__(self) -> bytes: ...
    def __eq__(self, other: object) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]
