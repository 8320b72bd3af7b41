"""x[...] with arrays of positions and masks, as NumPy has it."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from kernwright._array.methods import without_leading_ones
from kernwright._array.operands import host_index, require_inside, values_like
from kernwright._core import (
    Array,
    _adopt,
    _from_numpy,
    _put_at,
    _put_where,
    _split_positions,
    _take_at,
    _true_positions,
)

_ALL = slice(None)


def select(x: Array, key: Any) -> Array:
    """x[key] where an array or a mask is in the key: a copy."""
    found = _Selection(x, key)
    view, axes, indices = found.resolved()
    return _take_at(view, axes, indices, found.position)


def assign_selected(x: Array, key: Any, value: Any) -> None:
    """x[key] = value where an array or a mask is in the key; the last of equal positions wins."""
    found = _Selection(x, key)
    values = values_like(value, x)
    mask = found.only_mask()
    if mask is not None and _assign_masked(found, mask, values):
        return
    view, axes, indices = found.resolved()
    shapes = [tuple(np.shape(index)) for index in indices]
    ndim = view.ndim - len(axes) + max(len(shape) for shape in shapes)
    _put_at(view, axes, indices, found.position, without_leading_ones(values, ndim), False)


def _assign_masked(found: _Selection, mask: Array, values: Array) -> bool:
    """Without counting the mask, where the values are the same for all that it selects."""
    view, at = found.view, found.arrays[0][0]
    after = view.ndim - at - max(mask.ndim, 1)
    if found.position != at and values.ndim > after and values.size != 1:
        return False  # the axis of the true elements comes first
    values = without_leading_ones(values, after + 1 + at)
    split = values.ndim - after
    if split > at + 1 or (split > 0 and values.shape[split - 1] != 1):
        return False
    shape = values.shape
    before, rest = shape[: max(split - 1, 0)], shape[max(split, 0) :]
    stretched = (*before, *(1,) * max(mask.ndim, 1), *rest)
    place = (*(1,) * at, *(mask.shape or (1,)), *(1,) * after)
    _put_where(
        view,
        mask.reshape(place)._broadcast(view.shape),
        values.reshape(stretched)._broadcast(view.shape),
    )
    return True


class _Selection:
    """A key taken apart: a view by its basic parts, and arrays at axes of that view."""

    def __init__(self, x: Array, key: Any) -> None:
        parts = [_part(part, x) for part in (key if isinstance(key, tuple) else (key,))]
        self.arrays: list[tuple[int, Any]] = []  # axis of the view, positions or mask
        self.position = 0
        basic: list[Any] = []
        self._walk(x, parts, basic)
        self.view = x[tuple(basic)]
        self._order(parts)

    def _walk(self, x: Array, parts: list[Any], basic: list[Any]) -> None:
        used = sum(_consumed(part) for part in parts)
        if sum(part is Ellipsis for part in parts) > 1:
            raise IndexError("an index can have only one Ellipsis")
        if used > x.ndim:
            raise IndexError(
                f"too many indices: the array is {x.ndim}-dimensional, but {used} were given"
            )
        axis = at = 0
        for part in parts:
            if part is Ellipsis:
                basic += [_ALL] * (x.ndim - used)
                axis, at = axis + x.ndim - used, at + x.ndim - used
            elif part is None or isinstance(part, (slice, int)):
                basic.append(part)
                axis += part is not None
                at += not isinstance(part, int)
            else:
                _check(part, x, axis)
                self.arrays.append((at, part))
                count = _consumed(part)
                basic += [_ALL] * count if count else [None]
                axis, at = axis + count, at + max(count, 1)

    def _order(self, parts: list[Any]) -> None:
        """Where the axes of the positions stand: NumPy's rule."""
        advanced = [not (p is None or p is Ellipsis or isinstance(p, slice)) for p in parts]
        first, last = advanced.index(True), len(advanced) - 1 - advanced[::-1].index(True)
        self.position = 0
        if all(advanced[first : last + 1]):
            self.position = self.arrays[0][0]

    def only_mask(self) -> Array | None:
        """The mask on the device, when no other array is in the key."""
        if len(self.arrays) != 1 or self.arrays[0][1].dtype.kind != "b":
            return None
        mask = self.arrays[0][1]
        return mask if isinstance(mask, Array) else _from_numpy(mask, self.view.device)

    def resolved(self) -> tuple[Array, list[int], list[Array]]:
        """The view, its indexed axes, and positions on the device for each of them."""
        device = self.view.device
        axes: list[int] = []
        indices: list[Array] = []
        for at, array in self.arrays:
            if array.dtype.kind != "b":
                axes.append(at)
                indices.append(array if isinstance(array, Array) else _from_numpy(array, device))
                continue
            flat = _positions(array, device)
            shape = array.shape or (1,)
            if len(shape) == 1:
                axes.append(at)
                indices.append(flat)
            elif len(self.arrays) == 1 and self.view.is_contiguous:
                extents = self.view.shape
                merged = (*extents[:at], int(np.prod(shape)), *extents[at + len(shape) :])
                return self.view.reshape(merged), [at], [flat]
            else:
                axes += range(at, at + len(shape))
                rows = _split_positions(flat, shape)
                indices += [rows[d] for d in range(len(shape))]
        return self.view, axes, indices


def _positions(mask: Any, device: Any) -> Array:
    if isinstance(mask, Array):
        return _true_positions(mask.reshape(1) if mask.ndim == 0 else mask)
    return _from_numpy(np.flatnonzero(mask), device)


def _part(part: Any, x: Array) -> Any:
    """None, Ellipsis, a slice or an int as it is; positions and masks as an Array or NumPy's."""
    if part is None or part is Ellipsis or isinstance(part, (slice, Array)):
        if isinstance(part, Array) and part.dtype.kind not in "iub":
            host_index(np.empty(0, part.dtype))  # says what indices are
        return part
    if isinstance(part, (bool, np.bool_)):
        return np.asarray(part)
    if isinstance(part, (int, np.integer)):
        return operator.index(part)
    if not isinstance(part, (np.ndarray, np.generic, list, tuple, float, str)):
        adopted = _adopt(part, x.device)
        if adopted is not None:
            return _part(adopted, x)
        if not hasattr(part, "shape") and hasattr(part, "__index__"):
            return operator.index(part)
    return host_index(part)


def _consumed(part: Any) -> int:
    if part is None or part is Ellipsis:
        return 0
    if isinstance(part, (slice, int)) or part.dtype.kind != "b":
        return 1
    return int(part.ndim)


def _check(part: Any, x: Array, axis: int) -> None:
    """A mask has the extents that it stands at; positions of the host lie inside."""
    if part.dtype.kind == "b":
        for d, extent in enumerate(part.shape):
            if extent != x.shape[axis + d]:
                raise IndexError(
                    f"a mask of shape {part.shape} does not match axis {axis + d} of an array of "
                    f"shape {x.shape}: {extent} and {x.shape[axis + d]} elements"
                )
        return
    if not isinstance(part, Array):
        require_inside(part, x.shape[axis], axis)
