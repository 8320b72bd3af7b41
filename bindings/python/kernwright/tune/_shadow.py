"""Shadow buffers: a kernel's outputs, twice, so that a second kernel can run beside the first."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from kernwright import _core
from kernwright._array.creation import asarray


class NotShadowed(Exception):
    """Why these arguments have no shadows."""


def _span(array: _core.Array) -> tuple[int, int]:
    return array.ptr, array.ptr + array.nbytes


def _array(argument: Any) -> _core.Array | None:
    """The argument as an array over the same memory; None for other arguments."""
    if isinstance(argument, _core.Array):
        return argument
    if hasattr(argument, "__cuda_array_interface__") or hasattr(argument, "__dlpack__"):
        return asarray(argument, copy=False)
    return None


# What fills outputs before verified launches, one after the other: NaN and 2e16 as float32.
_POISON = (0xFF, 0x5A)


def _is_float(array: _core.Array) -> bool:
    dtype = np.dtype(array.dtype)
    return dtype.kind in "fc" or "float" in dtype.name


def _bytes_of(array: _core.Array) -> _core.Array:
    return array.reshape((array.size,)).view("uint8")


class Shadow:
    """Copies of a kernel's outputs, made on the current stream with this object.

    `arguments` are those of the launch with the copies in place; `written` the originals. Throws
    NotShadowed for raw pointers, host arrays and arrays that overlap in part, and beyond `limit`
    bytes. With `guards`, arrays behind const are copied as well, as far as the limit allows. With
    `compares`, `guarded` has for each what it held and the copy that the launch gets.
    """

    def __init__(
        self,
        parameters: Sequence[Any],
        arguments: Sequence[Any],
        limit: int,
        guards: bool = False,
        compares: bool = False,
    ) -> None:
        self.arguments = list(arguments)
        self.written: list[_core.Array] = []
        self.copies: list[_core.Array] = []
        self.guarded: list[tuple[_core.Array, _core.Array]] = []
        places: list[tuple[int, _core.Array, bool]] = []
        for place, (parameter, argument) in enumerate(zip(parameters, arguments, strict=True)):
            if parameter.kind != "pointer" or argument is None:
                continue
            array = _array(argument)
            if array is not None:
                places.append((place, array, not parameter.const))
            elif not parameter.const:
                raise NotShadowed(f"the argument {parameter.name} is no array of the device")
        bytes_needed = sum(2 * array.nbytes for _, array, writes in places if writes)
        if bytes_needed > limit:
            raise NotShadowed(f"shadows of {bytes_needed} bytes are above shadow_bytes={limit}")
        self._copy(places)
        if guards:
            self._guard(places, limit - bytes_needed, compares)

    def poison(self, turn: int) -> bool:
        """Fills the copies of floats with bytes that no result may depend on. Whether there are
        any. Integers stay: a kernel may take them for places in memory or for locks."""
        floats = [copy for copy in self.copies if copy.size and _is_float(copy)]
        for copy in floats:
            _bytes_of(copy)._fill(_POISON[turn % len(_POISON)])
        return bool(floats)

    def _guard(
        self, places: list[tuple[int, _core.Array, bool]], limit: int, compares: bool
    ) -> None:
        made: dict[tuple[int, int], _core.Array] = {}
        for place, array, writes in places:
            if writes or self.arguments[place] is not array or not array.size:
                continue
            copy = made.get(_span(array))
            if copy is None:
                bytes_needed = (2 if compares else 1) * array.nbytes
                if bytes_needed > limit:
                    continue
                limit -= bytes_needed
                copy = made[_span(array)] = array.copy()
                if compares:
                    self.guarded.append((array.copy(), copy))
            same = copy.dtype == array.dtype and copy.shape == array.shape
            self.arguments[place] = copy if same else copy.view(array.dtype)

    def _copy(self, places: list[tuple[int, _core.Array, bool]]) -> None:
        made: dict[tuple[int, int], _core.Array] = {}
        for _, array, writes in places:
            if writes and _span(array) not in made:
                made[_span(array)] = array.copy()
                self.written.append(array)
                self.copies.append(made[_span(array)])
        spans = list(made)
        for place, array, _ in places:
            low, high = _span(array)
            if (low, high) in made:
                copy = made[(low, high)]
                same = copy.dtype == array.dtype and copy.shape == array.shape
                self.arguments[place] = copy if same else copy.view(array.dtype)
            elif any(low < end and begin < high for begin, end in spans):
                raise NotShadowed("arguments overlap in part")
        for i, (low, high) in enumerate(spans):
            if any(low < end and begin < high for begin, end in spans[:i]):
                raise NotShadowed("arguments overlap in part")


# Finds the first place where two arrays differ, on the device: an array of results is seldom worth
# a copy to the host while others are served.
_COMPARE = """
template <typename T> __device__ bool differ(T a, T b, double, double) { return a != b; }
template <typename F> __device__ bool apart(F a, F b, double rtol, double atol) {
  if (a == b || (a != a && b != b)) return false;
  double distance = fabs((double)b - (double)a);
  return !(distance <= atol + rtol * fabs((double)a)) || distance > 1.7e308;
}
__device__ bool differ(float a, float b, double r, double t) { return apart(a, b, r, t); }
__device__ bool differ(double a, double b, double r, double t) { return apart(a, b, r, t); }
template <typename T>
__global__ void first_difference(const T* a, const T* b, unsigned long long n, double rtol,
                                 double atol, unsigned long long* first) {
  unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
  for (unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; i < n;
       i += step)
    if (differ(a[i], b[i], rtol, atol)) atomicMin(first, i);
}
"""
_TYPES = {
    "float32": ("float", "float32"),
    "complex64": ("float", "float32"),
    "float64": ("double", "float64"),
    "complex128": ("double", "float64"),
    **dict.fromkeys(("bool", "int8", "uint8"), ("unsigned char", "uint8")),
    **dict.fromkeys(("int16", "uint16"), ("unsigned short", "uint16")),
    **dict.fromkeys(("int32", "uint32"), ("unsigned int", "uint32")),
    **dict.fromkeys(("int64", "uint64"), ("unsigned long long", "uint64")),
}
_BLOCK = 256
_MOST_BLOCKS = 1024


@functools.cache
def _comparison(kind: str) -> _core.Kernel:
    from kernwright._jit.kernels import module

    return module(_COMPARE)[f"first_difference<{kind}>"]


def _prepare(arrays: Sequence[_core.Array]) -> None:
    """Compiles the comparison of such arrays on the current device."""
    for array in arrays:
        if (known := _TYPES.get(np.dtype(array.dtype).name)) is not None:
            _comparison(known[0]).compile()


def is_equal_on_device(a: _core.Array, b: _core.Array, rtol: float, atol: float) -> bool | None:
    """Whether no element differs, on the current stream; None for unknown types.

    Complex numbers are equal if both parts are.
    """
    known = _TYPES.get(np.dtype(a.dtype).name)
    if known is None or a.size == 0:
        return None if a.size else True
    kind, view = known
    left, right = (array.reshape((array.size,)).view(view) for array in (a, b))
    first = asarray(np.array([2**64 - 1], np.uint64))
    blocks = min(-(-left.size // _BLOCK), _MOST_BLOCKS)
    _comparison(kind)[blocks, _BLOCK](left, right, left.size, rtol, atol, first)
    return int(first.numpy()[0]) == 2**64 - 1


def _values(array: _core.Array) -> np.ndarray[Any, Any]:
    values = array.numpy()
    if values.dtype.kind in "biufc":
        return values
    try:
        return values.astype(np.float64)  # bfloat16 and its kin
    except (TypeError, ValueError):
        return values.view(np.uint8)


def difference(
    expected: Sequence[_core.Array],
    found: Sequence[_core.Array],
    rtol: float,
    atol: float,
    on_device: bool = False,
) -> str:
    """The first difference between arrays, empty for none. Waits on the current stream. On the
    device only what differs is copied to the host."""
    for number, (left, right) in enumerate(zip(expected, found, strict=True)):
        if on_device and is_equal_on_device(left, right, rtol, atol):
            continue
        a, b = _values(left), _values(right)
        exact = a.dtype.kind not in "fc"
        same = a == b if exact else np.isclose(b, a, rtol=rtol, atol=atol, equal_nan=True)
        if not np.all(same):
            at = np.unravel_index(int(np.argmin(same)), same.shape)
            return (
                f"written array {number} differs at {tuple(int(i) for i in at)}: {b[at]!r}, where "
                f"the incumbent gives {a[at]!r}"
            )
    return ""


class Outcome:
    """What a launch on a shadow left, beside what the incumbent wrote: `expected` copies of it.

    `before`: the outputs before both launches, if the shadow was not poisoned. Where none of them
    was changed, equal results are no evidence.
    """

    def __init__(
        self,
        expected: Sequence[_core.Array],
        shadow: Shadow,
        before: Sequence[_core.Array],
        tolerances: tuple[float, float],
    ) -> None:
        self._expected, self._shadow, self._before = expected, shadow, before
        self._tolerances = tolerances
        self.is_evidence = True

    @property
    def arrays(self) -> list[_core.Array]:
        return [*self._expected, *(_bytes_of(copy) for _, copy in self._shadow.guarded)]

    def difference(self, on_device: bool = False) -> str:
        """difference() of all of them."""
        found = difference(self._expected, self._shadow.copies, *self._tolerances, on_device)
        if found:
            return found
        for given, copy in self._shadow.guarded:
            if difference([_bytes_of(given)], [_bytes_of(copy)], 0.0, 0.0, on_device):
                return "an array that is const in the kernel's signature was changed"
        if self._before:
            self.is_evidence = bool(difference(self._expected, self._before, 0.0, 0.0, on_device))
        return ""


class Comparison:
    """The difference of an outcome, found on a thread and a stream of its own, behind what the
    current stream holds."""

    def __init__(self, outcome: Outcome, clock: Callable[[], float]) -> None:
        self.result: str | None = None  # while it runs
        self.outcome = outcome
        self.cost = 0.0
        device = _core.current_device()
        event = _core.current_stream().record()

        def compare() -> None:
            begin = clock()
            try:
                with _core.Stream(device=device) as stream:
                    _prepare(outcome.arrays)
                    stream.wait(event)
                    stream.synchronize()
                    begin = clock()  # what it waited for was done for the caller
                    found_difference = outcome.difference(on_device=True)
            except Exception as error:
                found_difference = f"the outputs cannot be compared: {error}"
            self.cost = clock() - begin
            self.result = found_difference

        threading.Thread(target=compare, name="kernwright-online-compare", daemon=True).start()
