"""Products of vectors and matrices by NumPy's names."""

from __future__ import annotations

import math
from typing import Any

from kernwright._array.data_types import _promoted
from kernwright._array.operands import axis_of, device_array, stored
from kernwright._core import Array
from kernwright.errors import InvalidArgument

__all__ = ["cross", "dot", "inner", "kron", "outer", "vdot"]


def _pair(a: Any, b: Any) -> tuple[Array, Array]:
    """Both on the device: a number has the type that it has beside the array."""
    import kernwright as kw

    numbers = (bool, int, float, complex)
    if isinstance(a, numbers) and isinstance(b, Array):
        return kw.full((), a, kw.result_type(a, b), device=b.device), b
    if isinstance(b, numbers) and isinstance(a, Array):
        return a, kw.full((), b, kw.result_type(a, b), device=a.device)
    return device_array(a, "a"), device_array(b, "b")


def dot(a: Any, b: Any, out: Array | None = None) -> Array:
    """The sum of products over the last axis of a and the last but one of b (of a vector its only
    one); with a number every product.

    Arrays and numbers, one at least an array. `out` takes the result. InvalidArgument for shapes
    that do not fit.

    >>> kw.dot(kw.asarray([1, 2]), kw.asarray([10, 1])).item()
    12
    """
    import kernwright as kw

    a, b = _promoted(*_pair(a, b))
    if a.ndim == 0 or b.ndim == 0:
        return kw.multiply(a, b, out=out)
    if a.ndim <= 2 and b.ndim <= 2:
        return kw.matmul(a, b, out=out)
    made = kw.tensordot(a, b, axes=([a.ndim - 1], [max(b.ndim - 2, 0)]))
    return made if out is None else stored(made, out)


def vdot(a: Any, b: Any) -> Array:
    """The sum of conj(a) * b over all elements, row by row.

    >>> kw.vdot(kw.asarray([[1, 2]]), kw.asarray([[10], [1]])).item()
    12
    """
    import kernwright as kw

    a, b = _pair(a, b)
    return kw.vecdot(a.reshape(-1), b.reshape(-1))


def inner(a: Any, b: Any) -> Array:
    """The sum of products over the last axes; what is left of a's axes comes first.

    >>> kw.inner(kw.asarray([[1, 2], [3, 4]]), kw.asarray([10, 1])).numpy()
    array([12, 34])
    """
    import kernwright as kw

    a, b = _promoted(*_pair(a, b))
    if a.ndim == 0 or b.ndim == 0:
        return kw.multiply(a, b)
    return kw.tensordot(a, b, axes=([a.ndim - 1], [b.ndim - 1]))


def outer(a: Any, b: Any, out: Array | None = None) -> Array:
    """Each element of a times each of b, both row by row: a matrix.

    >>> kw.outer(kw.asarray([1, 2]), kw.asarray([10, 1])).numpy()
    array([[10,  1],
           [20,  2]])
    """
    import kernwright as kw

    a, b = _pair(a, b)
    return kw.multiply(a.reshape(-1, 1), b.reshape(1, -1), out=out)


def kron(a: Any, b: Any) -> Array:
    """Kronecker's product: each element of a in turn times all of b, as a block.

    >>> kw.kron(kw.asarray([1, 10]), kw.asarray([1, 2])).numpy()
    array([ 1,  2, 10, 20])
    """
    import kernwright as kw

    a, b = _pair(a, b)
    ndim = max(a.ndim, b.ndim)
    left, right = ((1,) * (ndim - x.ndim) + x.shape for x in (a, b))
    pairs = list(zip(left, right, strict=True))
    a = a.reshape(tuple(n for m, _ in pairs for n in (m, 1)))
    b = b.reshape(tuple(n for _, m in pairs for n in (1, m)))
    return kw.multiply(a, b).reshape(tuple(math.prod(pair) for pair in pairs))


def cross(
    a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Array:
    """The cross product of vectors of three elements along axisa of a and axisb of b; axisc is
    their axis in the result; `axis` is all three. A vector of two elements has 0 as its third one;
    of two such vectors the result is that third element alone, without an axis. InvalidArgument for
    other extents.

    >>> kw.cross(kw.asarray([1, 0, 0]), kw.asarray([0, 1, 0])).numpy()
    array([0, 0, 1])
    """
    import kernwright as kw

    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = _promoted(device_array(a, "a"), device_array(b, "b"))
    first, second = axis_of(axisa, a.ndim), axis_of(axisb, b.ndim)
    if a.shape[first] not in (2, 3) or b.shape[second] not in (2, 3):
        raise InvalidArgument(
            f"Incompatible dimensions for cross(): {a.shape} and {b.shape} need 2 or 3 elements "
            f"along axes {axisa} and {axisb}"
        )
    a, b = kw.moveaxis(a, first, -1), kw.moveaxis(b, second, -1)
    if a.shape[-1] == b.shape[-1] == 2:
        made: Array = a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
        return made
    if a.shape[-1] == b.shape[-1]:
        made = kw.linalg.cross(a, b)
    else:
        made = -_lifted(b, a) if a.shape[-1] == 3 else _lifted(a, b)
    return kw.moveaxis(made, -1, axisc)


def _lifted(flat: Array, b: Array) -> Array:
    """The product of vectors of two elements with those of three."""
    import kernwright as kw

    x, y, z = flat[..., 0], flat[..., 1], b[..., 2]
    made: Array = kw.stack([y * z, -(x * z), x * b[..., 1] - y * b[..., 0]], axis=-1)
    return made
