"""The type of arrays in the extension module; `_core` has it."""

from collections.abc import Iterator, Sequence
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt
from typing_extensions import CapsuleType, Self

from kernwright._core import Device

_Shape = SupportsIndex | Sequence[SupportsIndex]
_DeviceLike = Device | int | str | None

class Array:
    """A strided n-dimensional array in device memory; views share the memory and keep it alive.

    kw.empty(), kw.zeros(), kw.asarray() and others make arrays. Operators and methods follow
    NumPy's rules of broadcasting and types, are queued on the current stream and return at once.
    No conversion to the host happens by itself: `numpy()` and `item()` copy and wait.

    >>> x = kw.asarray(np.arange(6, dtype=np.float32)).reshape(2, 3)
    >>> (x + 1).sum(axis=1).numpy().tolist()
    [6.0, 15.0]
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents, one an axis."""
    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next along each axis; may be negative or 0."""
    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the elements as a NumPy dtype; bfloat16 and float8 are those of ml_dtypes."""
    @property
    def ndim(self) -> int:
        """The number of axes."""
    @property
    def size(self) -> int:
        """The number of elements."""
    @property
    def nbytes(self) -> int:
        """Bytes of all elements: size * itemsize."""
    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
    @property
    def device(self) -> Device:
        """The device that has the memory."""
    @property
    def ptr(self) -> int:
        """The device address of the first element; 0 for an array without elements."""
    @property
    def is_contiguous(self) -> bool:
        """Whether the elements lie in C order without gaps."""
    @property
    def read_only(self) -> bool:
        """Whether writing raises ArgumentError: memory that another library lent for reading."""
    @property
    def T(self) -> Array:
        """A view with the axes in reverse order."""
    @property
    def mT(self) -> Array:
        """A view with the last two axes exchanged; InvalidArgument for fewer than two."""
    @property
    def real(self) -> Array:
        """A view of the real parts, which may be assigned; of real numbers the array itself."""
    @real.setter
    def real(self, value: Any) -> None: ...
    @property
    def imag(self) -> Array:
        """A view of the imaginary parts, which may be assigned; of real numbers zeros in new
        memory, and assigning raises ArgumentError."""
    @imag.setter
    def imag(self, value: Any) -> None: ...
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...
    def numpy(self) -> npt.NDArray[Any]:
        """A copy in new host memory. Waits for the work that was queued before on the current
        stream, and raises its errors: DeviceFault, DeviceLost. CaptureError while the stream is
        captured.

        >>> kw.ones(3).numpy()
        array([1., 1., 1.], dtype=float32)
        """
    def copy(self) -> Array:
        """A contiguous copy in new memory of the same device.

        >>> kw.zeros(2).copy().numpy()
        array([0., 0.], dtype=float32)
        """
    def astype(self, dtype: Any, *, copy: bool = True) -> Array:
        """The values converted to `dtype`, in new memory; with `copy=False` the same memory where
        the type stays. Floats become integers by truncation, complex numbers their real part.

        >>> kw.asarray([1.5, -2.5]).astype("int32").numpy()
        array([ 1, -2], dtype=int32)
        """
    def view(self, dtype: Any = None) -> Array:
        """The same memory as elements of another type, as NumPy has it: with elements of another
        size the last axis, which must have no gaps, grows or shrinks. ValueError where the bytes
        make no whole elements, or are not aligned for them.

        >>> kw.asarray([1.0, -2.0]).view("uint32").numpy() >> 31
        array([0, 1], dtype=uint32)
        """
    def reshape(self, *shape: Any) -> Array:
        """The elements in C order with another shape: a view where strides allow it, else a copy.
        One extent may be -1. Raises InvalidArgument where the sizes differ.

        >>> kw.arange(6).reshape(2, -1).shape
        (2, 3)
        """
    def transpose(self, *axes: Any) -> Array:
        """A view with the axes in the order given; without arguments in reverse order.

        >>> kw.ones((2, 3, 4)).transpose(2, 0, 1).shape
        (4, 2, 3)
        """
    def ravel(self) -> Array:
        """All elements in C order on one axis: a view where strides allow it, else a copy.

        >>> kw.asarray([[1, 2], [3, 4]]).ravel().numpy()
        array([1, 2, 3, 4])
        """
    def flatten(self) -> Array:
        """A copy of all elements in C order on one axis.

        >>> kw.asarray([[1, 2], [3, 4]]).T.flatten().numpy()
        array([1, 3, 2, 4])
        """
    def squeeze(self, axis: Any = None) -> Array:
        """A view without axes of extent 1: all of them, or those of `axis` (an int or a tuple).

        >>> kw.ones((1, 3, 1)).squeeze().shape
        (3,)
        >>> kw.ones((1, 3, 1)).squeeze(0).shape
        (3, 1)
        """
    def swapaxes(self, axis1: int, axis2: int, /) -> Array:
        """A view with two axes exchanged.

        >>> kw.ones((2, 3, 4)).swapaxes(0, 2).shape
        (4, 3, 2)
        """
    def repeat(self, repeats: Any, /, axis: int | None = None) -> Array:
        """Each element `repeats` times, along `axis` or in C order. As kw.repeat().

        >>> kw.asarray([1, 2]).repeat(2).numpy()
        array([1, 1, 2, 2])
        """
    def take(
        self, indices: Any, /, axis: int | None = None, out: Array | None = None,
        mode: str | None = None,
    ) -> Array:  # fmt: skip
        """The elements at `indices` along `axis`, or in C order. As kw.take().

        >>> kw.asarray([10, 20, 30]).take([2, 0]).numpy()
        array([30, 10])
        """
    def fill(self, value: Any) -> None:
        """Sets every element to `value`, a number or an array of one element. Raises
        ArgumentRangeError for a number the dtype cannot hold; in an array of bool all but 0 is
        True.

        >>> x = kw.empty(3)
        >>> x.fill(2)
        >>> x.numpy()
        array([2., 2., 2.], dtype=float32)
        """
    def to(self, device: _DeviceLike) -> Array:
        """The array itself on its own device, else a copy on `device`.

        >>> x = kw.ones(3)
        >>> x.to(x.device) is x
        True
        """
    def to_device(self, device: _DeviceLike, /, *, stream: None = None) -> Array:
        """As to(), with the array API's name; `stream` must be None: the current one is used.

        >>> x = kw.ones(3)
        >>> x.to_device(x.device) is x
        True
        """
    def __array_namespace__(self, *, api_version: str | None = None) -> Any: ...
    def __matmul__(self, other: Array) -> Array: ...
    def __rmatmul__(self, other: Array) -> Array: ...
    def __imatmul__(self, other: Array) -> Array: ...
    def sort(
        self, axis: int = -1, kind: str | None = None, *, descending: bool = False,
        stable: bool | None = True,
    ) -> None:  # fmt: skip
        """Puts the elements in order along an axis, as kw.sort() does; in place.

        >>> x = kw.asarray([3, 1, 2])
        >>> x.sort()
        >>> x.numpy()
        array([1, 2, 3])
        """
    def argsort(
        self, axis: int | None = -1, kind: str | None = None, *, descending: bool = False,
        stable: bool | None = True,
    ) -> Array:  # fmt: skip
        """kw.argsort() of this array.

        >>> kw.asarray([30, 10, 20]).argsort().numpy()
        array([1, 2, 0])
        """
    def searchsorted(self, x2: Any, /, side: str = "left", sorter: Array | None = None) -> Array:
        """Where each element of `x2` would go into this array. As kw.searchsorted().

        >>> kw.asarray([10, 20, 30]).searchsorted(kw.asarray([20, 25])).numpy()
        array([1, 2])
        """
    def argpartition(self, kth: Any, axis: int | None = -1, kind: str = "introselect") -> Array:
        """kw.argpartition() of this array.

        >>> kw.asarray([3, 9, 1, 5]).argpartition(1).numpy()
        array([2, 0, 3, 1])
        """
    def choose(self, choices: Any, out: Array | None = None, mode: str = "clip") -> Array:
        """The element of the choice that each element of this array counts. As kw.choose().

        >>> kw.asarray([0, 1]).choose([kw.asarray([1, 2]), kw.asarray([7, 8])]).numpy()
        array([1, 8])
        """
    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
        """A view of the elements of a diagonal. As kw.diagonal().

        >>> kw.asarray([[1, 2], [3, 4]]).diagonal().numpy()
        array([1, 4])
        """
    def dot(self, b: Any, out: Array | None = None) -> Array:
        """kw.dot() of this array and `b`.

        >>> kw.asarray([1, 2]).dot(kw.asarray([10, 1])).item()
        12
        """
    def trace(
        self, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None,
        out: Array | None = None,
    ) -> Array:  # fmt: skip
        """The sum of a diagonal. As kw.trace() of an array.

        >>> kw.asarray([[1, 2], [3, 4]]).trace().item()
        5
        """
    def nonzero(self) -> tuple[Array, ...]:
        """kw.nonzero() of this array.

        >>> kw.asarray([0, 5, 7]).nonzero()[0].numpy()
        array([1, 2])
        """
    def record_stream(self, stream: Any = None) -> None:
        """Tells the array that work of `stream` (default: the current one) uses its memory. The
        memory is not reused before that work is done. Launches and operations of this library say
        so by themselves.

        >>> x, stream = kw.ones(3), kw.Stream()
        >>> x.record_stream(stream)  # a kernel of another library reads x.ptr in this stream
        >>> del x
        """
    def sum(
        self, axis: Any = None, dtype: Any = None, out: Array | None = None, keepdims: bool = False
    ) -> Array:
        """The sum over `axis` (None: all axes). As kw.sum(); `out` receives the result.

        >>> kw.asarray([[1, 2], [3, 4]]).sum(axis=0).numpy()
        array([4, 6])
        """
    def prod(
        self, axis: Any = None, dtype: Any = None, out: Array | None = None, keepdims: bool = False
    ) -> Array:
        """The product over `axis`. As kw.prod().

        >>> kw.asarray([[1, 2], [3, 4]]).prod(axis=1).numpy()
        array([ 2, 12])
        """
    def mean(
        self, axis: Any = None, dtype: Any = None, out: Array | None = None, keepdims: bool = False
    ) -> Array:
        """The mean over `axis`. As kw.mean().

        >>> kw.asarray([[1, 2], [3, 4]]).mean(axis=0).numpy()
        array([2., 3.])
        """
    def max(self, axis: Any = None, out: Array | None = None, keepdims: bool = False) -> Array:
        """The largest element along `axis`; NaN where there is one. As kw.max().

        >>> kw.asarray([[1, 4], [3, 2]]).max(axis=1).numpy()
        array([4, 3])
        """
    def min(self, axis: Any = None, out: Array | None = None, keepdims: bool = False) -> Array:
        """The least element along `axis`; NaN where there is one. As kw.min().

        >>> kw.asarray([[1, 4], [3, 2]]).min(axis=1).numpy()
        array([1, 2])
        """
    def any(self, axis: Any = None, out: Array | None = None, keepdims: bool = False) -> Array:
        """Whether any element along `axis` is true. As kw.any().

        >>> kw.asarray([[0, 1], [0, 0]]).any(axis=1).numpy()
        array([ True, False])
        """
    def all(self, axis: Any = None, out: Array | None = None, keepdims: bool = False) -> Array:
        """Whether all elements along `axis` are true. As kw.all().

        >>> kw.asarray([[1, 1], [0, 1]]).all(axis=1).numpy()
        array([ True, False])
        """
    def argmax(self, axis: Any = None, out: Array | None = None, keepdims: bool = False) -> Array:
        """The place of the first largest element along `axis` (None: in C order), as int64.

        >>> kw.asarray([10, 30, 20]).argmax().item()
        1
        """
    def argmin(self, axis: Any = None, out: Array | None = None, keepdims: bool = False) -> Array:
        """The place of the first least element along `axis` (None: in C order), as int64.

        >>> kw.asarray([30, 10, 20]).argmin().item()
        1
        """
    def var(
        self, axis: Any = None, dtype: Any = None, out: Array | None = None, ddof: float = 0.0,
        keepdims: bool = False, *, correction: float = 0.0,
    ) -> Array:  # fmt: skip
        """The variance over `axis`, divided by the count less `ddof`. As kw.var().

        >>> kw.asarray([1.0, 3.0]).var().item()
        1.0
        >>> kw.asarray([1.0, 3.0]).var(correction=1).item()
        2.0
        """
    def std(
        self, axis: Any = None, dtype: Any = None, out: Array | None = None, ddof: float = 0.0,
        keepdims: bool = False, *, correction: float = 0.0,
    ) -> Array:  # fmt: skip
        """The standard deviation over `axis`, of count less `ddof`. As kw.std().

        >>> kw.asarray([1.0, 5.0]).std().item()
        2.0
        """
    def cumsum(self, axis: int | None = None, dtype: Any = None, out: Array | None = None) -> Array:
        """Running sums along `axis` (None: in C order). As kw.cumsum().

        >>> kw.asarray([1, 2, 3]).cumsum().numpy()
        array([1, 3, 6])
        """
    def cumprod(
        self, axis: int | None = None, dtype: Any = None, out: Array | None = None
    ) -> Array:
        """Running products along `axis` (None: in C order). As kw.cumprod().

        >>> kw.asarray([1, 2, 3]).cumprod().numpy()
        array([1, 2, 6])
        """
    def clip(self, min: Any = None, max: Any = None, out: Array | None = None) -> Array:
        """The elements, none below `min` or above `max`. As kw.clip().

        >>> kw.asarray([1, 5, 9]).clip(2, 6).numpy()
        array([2, 5, 6])
        """
    def round(self, decimals: int = 0, out: Array | None = None) -> Array:
        """The elements rounded to `decimals` digits. As kw.round().

        >>> kw.asarray([1.25, -2.5]).round().numpy()
        array([ 1., -2.], dtype=float32)
        """
    def conj(self) -> Array:
        """The complex conjugates; of real numbers a copy. As kw.conj().

        >>> kw.asarray([1 + 2j]).conj().numpy()
        array([1.-2.j], dtype=complex64)
        """
    def conjugate(self) -> Array:
        """conj() by its other name.

        >>> kw.asarray([1 + 2j]).conjugate().numpy()
        array([1.-2.j], dtype=complex64)
        """
    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers, or one number where there is no axis;
        waits for the work before, as numpy() does.

        >>> kw.asarray([[1.5, 2.0], [3.0, 4.0]]).tolist()
        [[1.5, 2.0], [3.0, 4.0]]
        """
    def item(self, *args: Any) -> Any:
        """The only element as a Python number, or that at a position row by row, or at one position
        for each axis; waits for the work before. Raises InvalidArgument for another number of
        elements, IndexError for a position outside.

        >>> kw.asarray([2, 3]).sum().item(), kw.asarray([[1, 2], [3, 4]]).item(1, 0)
        (5, 3)
        """
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Array]: ...
    def __contains__(self, value: object) -> bool:
        """Whether an element equals `value`; waits for the work before.

        >>> 2 in kw.asarray([1, 2]), 5 in kw.asarray([1, 2])
        (True, False)
        """
    def __eq__(self, other: Any) -> Array: ...  # type: ignore[override]
    def __ne__(self, other: Any) -> Array: ...  # type: ignore[override]
    __hash__ = None  # type: ignore[assignment]
    __array_ufunc__ = None
    def __lt__(self, other: Any) -> Array: ...
    def __le__(self, other: Any) -> Array: ...
    def __gt__(self, other: Any) -> Array: ...
    def __ge__(self, other: Any) -> Array: ...
    def __add__(self, other: Any) -> Array: ...
    def __radd__(self, other: Any) -> Array: ...
    def __iadd__(self, other: Any) -> Self: ...
    def __sub__(self, other: Any) -> Array: ...
    def __rsub__(self, other: Any) -> Array: ...
    def __isub__(self, other: Any) -> Self: ...
    def __mul__(self, other: Any) -> Array: ...
    def __rmul__(self, other: Any) -> Array: ...
    def __imul__(self, other: Any) -> Self: ...
    def __truediv__(self, other: Any) -> Array: ...
    def __rtruediv__(self, other: Any) -> Array: ...
    def __itruediv__(self, other: Any) -> Self: ...
    def __floordiv__(self, other: Any) -> Array: ...
    def __rfloordiv__(self, other: Any) -> Array: ...
    def __ifloordiv__(self, other: Any) -> Self: ...
    def __mod__(self, other: Any) -> Array: ...
    def __rmod__(self, other: Any) -> Array: ...
    def __imod__(self, other: Any) -> Self: ...
    def __pow__(self, other: Any) -> Array: ...
    def __rpow__(self, other: Any) -> Array: ...
    def __ipow__(self, other: Any) -> Self: ...
    def __and__(self, other: Any) -> Array: ...
    def __rand__(self, other: Any) -> Array: ...
    def __iand__(self, other: Any) -> Self: ...
    def __or__(self, other: Any) -> Array: ...
    def __ror__(self, other: Any) -> Array: ...
    def __ior__(self, other: Any) -> Self: ...
    def __xor__(self, other: Any) -> Array: ...
    def __rxor__(self, other: Any) -> Array: ...
    def __ixor__(self, other: Any) -> Self: ...
    def __lshift__(self, other: Any) -> Array: ...
    def __rlshift__(self, other: Any) -> Array: ...
    def __ilshift__(self, other: Any) -> Self: ...
    def __rshift__(self, other: Any) -> Array: ...
    def __rrshift__(self, other: Any) -> Array: ...
    def __irshift__(self, other: Any) -> Self: ...
    def __divmod__(self, other: Any) -> tuple[Array, Array]: ...
    def __rdivmod__(self, other: Any) -> tuple[Array, Array]: ...
    def __neg__(self) -> Array: ...
    def __pos__(self) -> Array: ...
    def __abs__(self) -> Array: ...
    def __invert__(self) -> Array: ...
    def __getitem__(self, key: Any) -> Array:
        """A view by numbers, slices, None and ...; a copy by arrays of integers or of bool, as in
        NumPy. A number gives an array without axes. Raises IndexError for a number outside of its
        axis and for a bad key.

        >>> a = kw.arange(12).reshape(3, 4)
        >>> a[1, ::2].numpy().tolist()
        [4, 6]
        >>> a[a > 8].numpy().tolist()
        [9, 10, 11]
        """
    def __setitem__(self, key: Any, value: Any) -> None:
        """Writes a number, an array of the device or one of NumPy where `key` points, with
        broadcasting; leading axes of one element are dropped. In an array of bool every number but
        0 is True. Raises IndexError as reading does, and ArgumentError for a shape or type that
        does not fit and for a read-only array.

        >>> a = kw.zeros((2, 3))
        >>> a[:, 1] = 7
        >>> a.numpy().tolist()
        [[0.0, 7.0, 0.0], [0.0, 7.0, 0.0]]
        """
    def __dlpack__(
        self, *, stream: int | None = None, max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None, copy: bool | None = None,
    ) -> CapsuleType: ...  # fmt: skip
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __bool__(self) -> bool: ...
    def __int__(self) -> int: ...
    def __float__(self) -> float: ...
    def __complex__(self) -> complex: ...
    def __index__(self) -> int: ...
    def __round__(self, decimals: int = 0, /) -> Array: ...
    def __trunc__(self) -> int: ...
    def __floor__(self) -> int: ...
    def __ceil__(self) -> int: ...
    def __format__(self, spec: str, /) -> str:
        """One number by Python's formats (ArgumentError for several); "" as str() has them.

        >>> f"{kw.asarray(0.125):.1%}"
        '12.5%'
        """
    def _fill(self, value: Any) -> None: ...
    def _assign(self, source: Array) -> None: ...
    def _assign_numpy(self, values: npt.NDArray[Any]) -> None: ...
    def _broadcast(self, shape: _Shape) -> Array: ...
