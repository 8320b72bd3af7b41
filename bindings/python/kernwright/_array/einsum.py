"""Einstein's summation."""

from __future__ import annotations

import math
import operator
import string
from typing import Any

import numpy as np

from kernwright import _core
from kernwright._array.data_types import _promoted
from kernwright._array.host_values import kind_of
from kernwright._array.operands import stored
from kernwright._core import Array
from kernwright.errors import ArgumentError, InvalidArgument

__all__ = ["einsum"]


def einsum(
    subscripts: Any, /, *operands: Any, out: Array | None = None, dtype: Any = None,
    optimize: Any = "greedy",
) -> Array:  # fmt: skip
    """Einstein's summation as numpy.einsum has it: "ij,jk->ik". Letters name axes. Axes that are
    not in the result are summed. "..." stands for broadcast axes. Without "->" the result has the
    letters that occur once, in alphabetical order. Axes may be lists of numbers, too:
    einsum(x, [0, 1], y, [1, 2], [0, 2]), with Ellipsis for "...".

    Two operands at a time are multiplied as matrices. `optimize` is their order: "greedy" (or
    True) and "optimal" are searches of numpy.einsum_path, False multiplies from left to right, and
    a list is a path of numpy.einsum_path. `dtype`: the type of the operands and of the result.
    `out` gets the result: it has its shape, and a type that holds it up to digits. InvalidArgument
    for shapes that do not fit, ArgumentError for axes that are not named as they must be.

    >>> a, b = kw.asarray([[1, 2], [3, 4]]), kw.asarray([10, 1])
    >>> kw.einsum("ij,j->i", a, b).numpy()
    array([12, 34])
    """
    if not isinstance(subscripts, str):
        subscripts, operands = _spelled(subscripts, *operands)
    if not operands:
        raise ArgumentError("einsum() multiplies arrays, and was given none")
    arrays = list(_promoted(*operands))
    if dtype is not None:
        arrays = [array.astype(dtype, copy=False) for array in arrays]
    terms, output = _parsed(subscripts, arrays)
    sizes = _sizes(terms, arrays, subscripts)
    pairs = [_single(array, term, sizes) for array, term in zip(arrays, terms, strict=True)]
    result = _contracted(pairs, output, optimize)
    return result if out is None else stored(result, out)


def _contracted(pairs: list[tuple[Array, str]], output: str, optimize: Any) -> Array:
    for positions in _path(pairs, output, optimize):
        chosen = [pairs.pop(at) for at in sorted(positions, reverse=True)][::-1]
        rest = set(output).union(*(term for _, term in pairs))
        joined = chosen[0]
        for at, other in enumerate(chosen[1:], 2):
            joined = _multiplied(joined, other, rest.union(*(term for _, term in chosen[at:])))
        pairs.append(_reduced(joined, rest))
    array, term = _reduced(pairs[0], set(output))
    order = [term.index(letter) for letter in output]
    return array.transpose(*order) if order != list(range(len(order))) else array


def _spelled(*arguments: Any) -> tuple[str, tuple[Any, ...]]:
    """Letters for lists of axes: x, [0, 1], y, [1, 2], [0, 2]."""
    operands, axes = arguments[::2], arguments[1::2]
    if len(operands) > len(axes):  # the last list is that of the result
        operands, output = operands[:-1], "->" + _letters(operands[-1])
    else:
        output = ""
    return ",".join(map(_letters, axes)) + output, operands


def _letters(axes: Any) -> str:
    if not isinstance(axes, (list, tuple)):
        raise ArgumentError(
            "einsum() begins with a str of letters, or has a list of axes behind each array, not "
            + kind_of(axes)
        )
    text = ""
    for axis in axes:
        if axis is Ellipsis:
            text += "..."
            continue
        number = operator.index(axis)
        if not 0 <= number < len(string.ascii_letters):
            raise InvalidArgument(f"axes of einsum() are numbers from 0 to 51, got {number}")
        text += sorted(string.ascii_letters)[number]  # in the order of the numbers
    return text


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
    """The extent of each letter. One element is broadcast, but not within an array."""
    sizes: dict[str, int] = {}
    for term, array in zip(terms, arrays, strict=True):
        inside: dict[str, int] = {}
        for letter, extent in zip(term, array.shape, strict=True):
            known = sizes.get(letter, 1)
            differs = inside.setdefault(letter, extent) != extent
            if differs or (extent != known and 1 not in (extent, known)):
                known = inside[letter] if differs else known
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


def _path(pairs: list[tuple[Array, str]], output: str, optimize: Any) -> list[Any]:
    """Positions of the operands that are multiplied next, of those that are left."""
    if isinstance(optimize, (list, tuple)) and optimize and optimize[0] == "einsum_path":
        return _checked_path(list(optimize[1:]), len(pairs))
    if isinstance(optimize, tuple) and len(optimize) == 2:  # with a limit of memory, as NumPy's
        optimize = optimize[0]
    names: dict[Any, Any] = {
        None: "greedy",
        True: "greedy",
        False: False,
        "greedy": "greedy",
        "optimal": "optimal",
    }
    if isinstance(optimize, (list, dict)) or optimize not in names:
        raise ArgumentError(
            'optimize is True, False, "greedy", "optimal" or a path that begins with "einsum_path",'
            f" not {optimize!r:.60}"
        )
    letters = sorted({letter for _, term in pairs for letter in term})
    if len(pairs) <= 2:
        return [tuple(range(len(pairs)))]
    if names[optimize] is False or len(letters) > 26:
        return [(0, 1), *((0, rest) for rest in range(len(pairs) - 2, 0, -1))]
    plain = {letter: chr(ord("a") + i) for i, letter in enumerate(letters)}

    def spelled(term: str) -> str:
        return "".join(plain[letter] for letter in term)

    text = ",".join(spelled(term) for _, term in pairs) + "->" + spelled(output)
    stand_ins = [np.broadcast_to(np.float32(0), array.shape) for array, _ in pairs]
    return list(np.einsum_path(text, *stand_ins, optimize=names[optimize])[0][1:])


def _checked_path(path: list[Any], count: int) -> list[Any]:
    left = count
    for step in path:
        if len(set(step)) != len(step) or not all(0 <= at < left for at in step):
            raise InvalidArgument(f"a step {step} of the path does not choose from {left} operands")
        left += 1 - len(step)
    return path if left == 1 else [*path, tuple(range(left))]


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
