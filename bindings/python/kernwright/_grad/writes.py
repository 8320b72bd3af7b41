"""Handlers of elementwise operations, of indexing, and of all that writes into arrays.

A write makes another node of its target: what was recorded before stays with the old values. Views
of the target that were made before it are refused from then on (see recording.py).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import kernwright as kw
from kernwright import _core
from kernwright._core import Array, _elementwise, _unrecorded
from kernwright._grad.calls import Handler, members, refused_handler
from kernwright._grad.recording import (
    Pairs,
    forget,
    is_traced,
    note_checked,
    note_write,
    refuse_stale,
    unrecorded,
)
from kernwright._grad.table import elementwise
from kernwright.errors import ArgumentError


def _without(name: str) -> elementwise.Rule:
    """Of a function without a gradient."""

    def rule(y: Array, *operands: Any) -> Pairs:
        if any(is_traced(each) for each in operands):
            raise ArgumentError(f"kw.{name}() has no gradient: pass kw.stop_gradient(x)")
        return ()

    return rule


# The rules of operators and functions by name. All others are constants.
ELEMENTWISE = {**elementwise.RULES, **{name: _without(name) for name in elementwise.WITHOUT}}


def elementwise_pairs(
    result: Array, name: str, operands: tuple[Any, ...], out: Any = None
) -> Pairs:
    rule = ELEMENTWISE.get(name)
    return () if rule is None else rule(result, *operands)


def compute(name: str, operands: tuple[Any, ...], out: Any) -> Any:
    """The handler of elementwise functions with `out`."""
    return written(out, _elementwise(name, operands), f"kw.{name}(out=...)")


def in_place(name: str, a: Any, b: Any) -> Any:
    """a <operation>= b: the same array, and from here on another node. Where the gradient needs
    what is overwritten, it gets a copy, and the result is written over `a`."""
    call = f"{name} in place"
    if name not in ("add", "subtract") and (name not in ("multiply", "divide") or is_traced(b)):
        kept = a.copy() if is_traced(b) or name == "pow" else a
        return written(a, _elementwise(name, (kept, kept if b is a else b)), call)
    traced = is_traced(a) or is_traced(b)
    refuse_stale(call, (a, b))
    note_write(a, call, traced)
    _unrecorded(_elementwise, name, (a, b), a)
    if traced:
        note_checked(call, ELEMENTWISE[name](a, a, b), a)
    return a


def written(out: Any, made: Array, call: str) -> Any:
    """`out` with the elements of `made`, by the rules of elementwise functions."""
    traced = is_traced(made)
    if isinstance(out, Array):
        note_write(out, call, traced)
    _unrecorded(_elementwise, "where", (True, made, made), out)
    _rebind(out, made, traced, call)
    return out


def two_parts(function: Any) -> Handler:
    """The handler of a function with two results and `out`."""

    def handler(x: Any, out: Any) -> Any:
        made, call = function(x), f"kw.{function.__name__}(out=...)"
        return tuple(
            part if given is None else written(given, part, call)
            for part, given in zip(made, out, strict=True)
        )

    return handler


def _rebind(target: Array, source: Any, traced: bool, call: str) -> None:
    if traced:
        note_checked(call, [(source, lambda g: g)], target)
    else:
        forget(target)


def assign(target: Array, source: Array) -> None:
    traced = is_traced(source)
    note_write(target, "an assignment", traced)
    _unrecorded(Array._assign, target, source)
    _rebind(target, source, traced, "an assignment")


def overwriting(function: Any, call: str) -> Handler:
    """A function that fills its first argument with constants."""

    def handler(target: Array, *args: Any) -> Any:
        note_write(target, call)
        result = _unrecorded(function, target, *args)
        forget(target)
        return result

    return handler


def writing(function: Any, call: str, targets: Callable[..., Any] = lambda *args: args) -> Handler:
    """A function without a gradient that may write into the arrays of targets(*args)."""
    refused = refused_handler(function, call)

    def handler(*args: Any, **kwargs: Any) -> Any:
        for each in members((*targets(*args), *kwargs.values())):
            if isinstance(each, Array):
                note_write(each, call)
        return refused(*args, **kwargs)

    return handler


def _changed(
    target: Array, values: Any, call: str, run: Callable[[], Any],
    of_target: Callable[[Array], Any], of_values: Callable[[Array], Any],
) -> None:  # fmt: skip
    """A part of `target` is replaced by `values`, or they are added there."""
    traced = is_traced(target) or is_traced(values)
    refuse_stale(call, (target, values), but=values)  # y[k] += x writes y[k] first
    note_write(target, call, traced)
    run()
    if traced:
        note_checked(call, [(target, of_target), (values, of_values)], target)


def _of_last(
    part: Array, g: Array, write: Callable[[Array, Array], Any], read: Callable[[Array], Array]
) -> Array:
    """`part`, and 0 for values that others overwrote: of equal positions the last one wins."""
    with unrecorded():
        numbers = kw.arange(part.size, dtype="int64", device=g.device).reshape(part.shape)
        place = kw.full(g.shape, -1, dtype="int64", device=g.device)
        write(place, numbers)
        won = read(place) == numbers
    made: Array = kw.where(won, part, 0)
    return made


_plain_getitem, _plain_setitem = Array.__getitem__, Array.__setitem__


def select(x: Array, key: Any) -> Any:
    """The handler of an index that is an array, a mask, or has one."""
    if not is_traced(x):
        return _unrecorded(_plain_getitem, x, key)
    from kernwright._array.selection import select

    return select(x, key)


def setitem(x: Array, key: Any, value: Any) -> None:
    ndim = value.ndim if isinstance(value, Array) else 0

    def cleared(g: Array) -> Array:
        made = g.copy()
        made[key] = 0
        return made

    def chosen(g: Array) -> Array:
        part = g[key]
        if not _core._is_basic_index(key):
            part = _of_last(part, g, lambda to, numbers: to.__setitem__(key, numbers),
                            lambda source: source[key])  # fmt: skip
        return part.reshape((1,) * max(ndim - part.ndim, 0) + part.shape)

    run = functools.partial(_unrecorded, _plain_setitem, x, key, value)
    _changed(x, value, "x[...] = ...", run, cleared, chosen)


def put_at(x: Array, axes: Any, indices: Any, position: int, values: Array, unique: bool) -> None:
    def cleared(g: Array) -> Array:
        made = g.copy()
        zero = kw.zeros((), dtype=g.dtype, device=g.device)
        _core._put_at(made, axes, indices, position, zero, unique)
        return made

    def read(source: Array) -> Array:
        made: Array = _core._take_at(source, axes, indices, position)
        return made

    def write(to: Array, numbers: Array) -> None:
        _core._put_at(to, axes, indices, position, numbers, unique)

    def chosen(g: Array) -> Array:
        return read(g) if unique else _of_last(read(g), g, write, read)

    run = functools.partial(_unrecorded, _core._put_at, x, axes, indices, position, values, unique)
    _changed(x, values, "kw.put()", run, cleared, chosen)


def add_at(x: Array, axes: Any, indices: Any, position: int, values: Array) -> None:
    run = functools.partial(_unrecorded, _core._add_at, x, axes, indices, position, values)
    _changed(x, values, "kw.add_at()", run, lambda g: g,
             lambda g: _core._take_at(g, axes, indices, position))  # fmt: skip


def scatter(x: Array, axis: int, index: Array, values: Array, unique: bool, add: bool) -> None:
    def cleared(g: Array) -> Array:
        if add:
            return g
        made = g.copy()
        zeros = kw.zeros(index.shape, dtype=g.dtype, device=g.device)
        _core._scatter(made, axis, index, zeros, unique, False)
        return made

    def read(source: Array) -> Array:
        made: Array = _core._gather(source, axis, index)
        return made

    def write(to: Array, numbers: Array) -> None:
        _core._scatter(to, axis, index, numbers, unique, False)

    def chosen(g: Array) -> Array:
        return read(g) if unique or add else _of_last(read(g), g, write, read)

    run = functools.partial(_unrecorded, _core._scatter, x, axis, index, values, unique, add)
    _changed(x, values, "kw.put_along_axis()", run, cleared, chosen)


def put_where(x: Array, mask: Array, values: Array) -> None:
    run = functools.partial(_unrecorded, _core._put_where, x, mask, values)
    _changed(x, values, "x[mask] = ...", run, lambda g: kw.where(mask, 0, g),
             lambda g: kw.where(mask, g, 0))  # fmt: skip
