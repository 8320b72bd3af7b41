"""Products: of matrices, over axes, by Einstein's summation."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from kernwright import _core
from kernwright._array.creation import _kind
from kernwright._array.data_types import _promoted
from kernwright._core import Array
from kernwright.errors import ArgumentError, InvalidArgument

__all__ = ["einsum", "matmul", "tensordot", "vecdot"]


def matmul(
    x1: Array,
    x2: Array,
    /,
    *,
    precision: Literal["float32", "tf32"] | None = None,
    tune: bool = False,
) -> Array:
    """x1 @ x2: [..., m, k] times [..., k, n] is [..., m, n]. The dimensions in front are broadcast.
    A vector counts as one row on the left and as one column on the right; the result does not have
    that dimension.

    Types are promoted as NumPy's. Floats below 32 bits are summed in float32, in an order that the
    shapes decide: the same bits in each run. From compute capability 8.0 on float32 and float64
    round each product once, when it is added. precision="tf32" allows products of float32 to round
    their operands to 11 bits for the tensor cores; few rows, or one column, of a large one do not.

    The kernel and its tiles are those that the table of the device has for the shape, else those of
    a rule. `tune` measures all kernels for this shape in the first call; this takes a moment. The
    choice is kept in the user's table on disk. Later calls use it without `tune`, in other
    processes too. See kw.tune.products(). InvalidArgument for a number without dimensions and for
    shapes that do not fit, ArgumentError for another precision, and tf32 of another type.

    >>> a, b = kw.asarray([[1, 2], [3, 4]]), kw.asarray([10, 1])
    >>> kw.matmul(a, b).numpy()
    array([12, 34])
    """
    left, right = _promoted(x1, x2)
    if left.ndim == 0 or right.ndim == 0:
        raise InvalidArgument(
            f"Incompatible dimensions for a matrix product: {left.shape} and {right.shape}; "
            "multiply by a number with *"
        )
    is_row, is_column = left.ndim == 1, right.ndim == 1
    a, b = left[None, :] if is_row else left, right[:, None] if is_column else right
    result = _core._matmul(a, b, precision)
    if tune:
        from kernwright.tune._products import tune_product

        tune_product(a, b, lambda: _core._matmul(a, b, precision), precision)
        result = _core._matmul(a, b, precision)
    if is_column:
        result = result.reshape(result.shape[:-1])
    if is_row:
        at = result.ndim - (1 if is_column else 2)
        result = result.reshape(result.shape[:at] + result.shape[at + 1 :])
    return result


def _axes_of(axes: Any, x1: Array, x2: Array) -> tuple[list[int], list[int]]:
    if isinstance(axes, (int, np.integer)):
        if axes < 0 or axes > min(x1.ndim, x2.ndim):
            raise InvalidArgument(
                f"tensordot() over {axes} axes of arrays with {x1.ndim} and {x2.ndim} dimensions"
            )
        return list(range(x1.ndim - int(axes), x1.ndim)), list(range(int(axes)))
    first, second = (list(part) if not isinstance(part, int) else [part] for part in axes)
    if len(first) != len(second):
        raise InvalidArgument(f"tensordot() over {len(first)} axes here and {len(second)} there")
    return _normalized(first, x1.ndim), _normalized(second, x2.ndim)


def _normalized(axes: list[int], ndim: int) -> list[int]:
    result = []
    for axis in axes:
        if not -ndim <= axis < ndim:
            raise InvalidArgument(f"axis {axis} is out of bounds for {ndim} dimensions")
        result.append(int(axis) % ndim)
    if len(set(result)) != len(result):
        raise InvalidArgument(f"an axis is named twice: {tuple(axes)}")
    return result


def tensordot(x1: Array, x2: Array, /, *, axes: Any = 2) -> Array:
    """The sum of products over the last `axes` axes of x1 and the first of x2, or over a pair of
    sequences of axes. What is left of x1's axes comes first, then x2's.

    >>> kw.tensordot(kw.ones((2, 3, 4)), kw.ones((3, 4, 5))).shape
    (2, 5)
    """
    left, right = _promoted(x1, x2)
    first, second = _axes_of(axes, left, right)
    if [left.shape[a] for a in first] != [right.shape[a] for a in second]:
        raise InvalidArgument(
            f"Incompatible dimensions for tensordot(): {left.shape} over axes {tuple(first)} and "
            f"{right.shape} over axes {tuple(second)}"
        )
    kept_first = [a for a in range(left.ndim) if a not in first]
    kept_second = [a for a in range(right.ndim) if a not in second]
    shape = tuple(left.shape[a] for a in kept_first) + tuple(right.shape[a] for a in kept_second)
    inner = math.prod(left.shape[a] for a in first)
    rows = math.prod(left.shape[a] for a in kept_first)
    columns = math.prod(right.shape[a] for a in kept_second)
    a = left.transpose(*kept_first, *first).reshape(rows, inner) if left.ndim else _matrix(left)
    b = (
        right.transpose(*second, *kept_second).reshape(inner, columns)
        if right.ndim
        else _matrix(right)
    )
    return _core._matmul(a, b).reshape(shape)


def _matrix(x: Array) -> Array:
    return x.reshape(1, 1)


def vecdot(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    """The sum of conj(x1) * x2 over one axis, counted from the end; the others are broadcast.

    >>> kw.vecdot(kw.asarray([1, 2, 3]), kw.asarray([10, 1, 0])).item()
    12
    """
    import kernwright as kw

    left, right = _promoted(x1, x2)
    if not -min(left.ndim, right.ndim) <= axis < 0 and not (
        left.ndim == right.ndim and 0 <= axis < left.ndim
    ):
        raise InvalidArgument(
            f"axis {axis} is out of bounds for vecdot() of {left.shape} and {right.shape}"
        )
    if left.shape[axis] != right.shape[axis]:
        raise InvalidArgument(
            f"Incompatible dimensions for vecdot(): {left.shape} and {right.shape} along {axis}"
        )
    left, right = _last(left, axis), _last(right, axis)
    if left.dtype.kind == "c":
        left = kw.conj(left)
    product = _core._matmul(left[..., None, :], right[..., :, None])
    return product.reshape(product.shape[:-2])


def _last(x: Array, axis: int) -> Array:
    axis %= x.ndim
    return x.transpose(*(a for a in range(x.ndim) if a != axis), axis)


# ------------------------------------------------------------------------------------- einsum


def einsum(subscripts: str, /, *operands: Array) -> Array:
    """Einstein's summation as numpy.einsum has it: "ij,jk->ik". Letters name axes. Axes that are
    not in the result are summed. "..." stands for broadcast axes. Without "->" the result has the
    letters that occur once, in alphabetical order. Two operands at a time are multiplied as
    matrices, in the order of numpy.einsum_path's greedy search.

    >>> a, b = kw.asarray([[1, 2], [3, 4]]), kw.asarray([10, 1])
    >>> kw.einsum("ij,j->i", a, b).numpy()
    array([12, 34])
    """
    if not isinstance(subscripts, str):
        raise ArgumentError(f"einsum() begins with a str of letters, not {_kind(subscripts)}")
    if not operands:
        raise ArgumentError("einsum() multiplies arrays, and was given none")
    arrays = list(_promoted(*operands))
    terms, output = _parsed(subscripts, arrays)
    sizes = _sizes(terms, arrays, subscripts)
    pairs = [_single(array, term, sizes) for array, term in zip(arrays, terms, strict=True)]
    for positions in _path(pairs, output):
        chosen = [pairs.pop(at) for at in sorted(positions, reverse=True)][::-1]
        rest = set(output).union(*(term for _, term in pairs))
        joined = chosen[0]
        for other in chosen[1:]:
            joined = _multiplied(joined, other, rest | set(output))
        pairs.append(_reduced(joined, rest))
    array, term = _reduced(pairs[0], set(output))
    order = [term.index(letter) for letter in output]
    return array.transpose(*order) if order != list(range(len(order))) else array


def _parsed(subscripts: str, arrays: list[Array]) -> tuple[list[str], str]:
    """Terms and result as letters alone: the axes of "..." get letters of their own."""
    text = subscripts.replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(arrays):
        raise ArgumentError(f"einsum({subscripts!r}) names {len(terms)} arrays, got {len(arrays)}")
    letters = set("".join(terms).replace(".", "")) | set(right.replace(".", ""))
    if not all(letter.isalpha() and letter.isascii() for letter in letters):
        raise ArgumentError(f"einsum({subscripts!r}): axes are named by the letters a-z and A-Z")
    spare = [chr(code) for code in range(0x100, 0x180)]
    deepest = 0
    expanded = []
    for term, array in zip(terms, arrays, strict=True):
        named = len(term.replace("...", ""))
        hidden = array.ndim - named
        if ("..." in term and hidden < 0) or ("..." not in term and hidden != 0):
            raise InvalidArgument(
                f"Incompatible dimensions for einsum({subscripts!r}): {term!r} names {named} axes "
                f"of an array of shape {array.shape}"
            )
        deepest = max(deepest, hidden if "..." in term else 0)
        expanded.append(term.replace("...", "".join(spare[:hidden][::-1])))
    hidden_letters = "".join(spare[:deepest][::-1])
    if arrow:
        output = right.replace("...", hidden_letters)
        unknown = set(output) - set("".join(expanded)) - set(hidden_letters)
        if unknown or len(set(output)) != len(output):
            raise ArgumentError(f"einsum({subscripts!r}): the result names each axis of them once")
    else:
        every = "".join(terms).replace(".", "")
        output = hidden_letters + "".join(sorted(c for c in set(every) if every.count(c) == 1))
    return expanded, output


def _sizes(terms: list[str], arrays: list[Array], subscripts: str) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for term, array in zip(terms, arrays, strict=True):
        for letter, extent in zip(term, array.shape, strict=True):
            known = sizes.get(letter, 1)
            if extent != known and 1 not in (extent, known):
                raise InvalidArgument(
                    f"Incompatible dimensions for einsum({subscripts!r}): axis {letter!r} has "
                    f"{known} and {extent} elements, shapes {[a.shape for a in arrays]}"
                )
            sizes[letter] = known if extent == 1 else extent
    return sizes


def _single(array: Array, term: str, sizes: dict[str, int]) -> tuple[Array, str]:
    """Stretched to the full extents, with diagonals where a letter is repeated."""
    array = array._broadcast(tuple(sizes[letter] for letter in term))
    for letter in dict.fromkeys(term):
        while term.count(letter) > 1:
            first = term.index(letter)
            second = term.index(letter, first + 1)
            array = _core._diagonal_view(array, 0, first, second)
            term = term[:first] + term[first + 1 : second] + term[second + 1 :] + letter
    return array, term


def _path(pairs: list[tuple[Array, str]], output: str) -> list[Any]:
    if len(pairs) <= 2:
        return [tuple(range(len(pairs)))]
    letters = sorted({letter for _, term in pairs for letter in term})
    plain = {letter: chr(ord("a") + i) for i, letter in enumerate(letters)}
    if len(letters) > 26:
        return [(0, 1)] * (len(pairs) - 1)

    def spelled(term: str) -> str:
        return "".join(plain[letter] for letter in term)

    text = ",".join(spelled(term) for _, term in pairs) + "->" + spelled(output)
    stand_ins = [np.broadcast_to(np.float32(0), array.shape) for array, _ in pairs]
    return list(np.einsum_path(text, *stand_ins, optimize="greedy")[0][1:])


def _reduced(pair: tuple[Array, str], kept: set[str]) -> tuple[Array, str]:
    """Summed over what nobody needs any more."""
    import kernwright as kw

    array, term = pair
    axes = tuple(at for at, letter in enumerate(term) if letter not in kept)
    if not axes:
        return pair
    summed = kw.sum(array, axis=axes, dtype=array.dtype)
    return summed, "".join(letter for letter in term if letter in kept)


def _multiplied(
    left: tuple[Array, str], right: tuple[Array, str], kept: set[str]
) -> tuple[Array, str]:
    (a, a_term), (b, b_term) = (
        _reduced(left, kept | set(right[1])),
        _reduced(right, kept | set(left[1])),
    )
    both = [letter for letter in a_term if letter in b_term]
    batch = [letter for letter in both if letter in kept]
    inner = [letter for letter in both if letter not in kept]
    rows = [letter for letter in a_term if letter not in both]
    columns = [letter for letter in b_term if letter not in both]
    size = {**dict(zip(a_term, a.shape, strict=True)), **dict(zip(b_term, b.shape, strict=True))}

    def extent(names: list[str]) -> int:
        return math.prod(size[letter] for letter in names)

    def arranged(x: Array, term: str, names: list[str]) -> Array:
        return x.transpose(*(term.index(letter) for letter in names)) if names else x

    a = arranged(a, a_term, batch + rows + inner).reshape(
        extent(batch), extent(rows), extent(inner)
    )
    b = arranged(b, b_term, batch + inner + columns)
    b = b.reshape(extent(batch), extent(inner), extent(columns))
    names = batch + rows + columns
    return _core._matmul(a, b).reshape(tuple(size[c] for c in names)), "".join(names)
