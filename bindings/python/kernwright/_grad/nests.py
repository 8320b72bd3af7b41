"""Nests of arrays: what a function's arguments and results are made of."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from kernwright._core import Array
from kernwright._support.cycles import require_no_cycle
from kernwright._support.modules import is_module
from kernwright.errors import ArgumentError


def children(value: Any) -> list[tuple[Any, Any]] | None:
    """The keys and members of a dict, list or tuple; None where `value` is none of them."""
    if isinstance(value, dict):
        return list(value.items())
    if isinstance(value, (list, tuple)):
        return list(enumerate(value))
    return None


def rebuilt(value: Any, members: list[Any]) -> Any:
    """A nest as `value` with other members."""
    if isinstance(value, dict):
        made = {} if type(value) is dict else copy.copy(value)  # an OrderedDict stays one
        for key, each in zip(value, members, strict=True):
            made[key] = each
        return made
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*members)
    return type(value)(members)


def mapped(
    change: Callable[[Array, str], Any], value: Any, path: str = "", other: Any = None
) -> Any:
    """The nest with change(array, path) in the place of each array; None stays. `other` gets what
    is neither an array nor a nest, and its path. Raises InvalidArgument for a nest that contains
    itself."""
    try:
        return _mapped(change, value, path, other)
    except RecursionError:
        require_no_cycle(value, path or "the nest")
        raise


def _mapped(change: Callable[[Array, str], Any], value: Any, path: str, other: Any) -> Any:
    if isinstance(value, Array):
        return change(value, path)
    found = children(value)
    if found is not None:
        return rebuilt(
            value, [_mapped(change, each, f"{path}[{key!r}]", other) for key, each in found]
        )
    return value if other is None or value is None else other(value, path)


def arrays(value: Any) -> list[Array]:
    """The arrays of a nest, in order; those of modules, too."""
    found: list[Array] = []

    def from_module(other: Any, path: str) -> Any:
        if is_module(other):
            found.extend(array for _, array in other.named_parameters())
        return other

    mapped(lambda array, path: found.append(array), value, other=from_module)
    return found


def copied(value: Any) -> Any:
    """The nest with copies of the arrays; modules are copied, too."""
    return mapped(
        lambda array, path: array.copy(), value,
        other=lambda each, path: each.copy() if is_module(each) else each,
    )  # fmt: skip


def leaves(value: Any, path: str, add: Callable[[Array], Any]) -> tuple[Any, Any]:
    """An argument with gradients, as the function gets it, and the nest of its leaves.

    The arrays of a nest become objects of their own, which share the memory: one that is given
    twice has two gradients. The parameters of a module stay what they are. `add` registers an array
    and returns its leaf. Raises InvalidArgument for a nest that contains itself.
    """
    try:
        return _leaves(value, path, add)
    except RecursionError:
        require_no_cycle(value, path)
        raise


def _leaves(value: Any, path: str, add: Callable[[Array], Any]) -> tuple[Any, Any]:
    if is_module(value):
        return value, module_leaves(value, path, add)
    if isinstance(value, Array):
        if not is_real_or_complex(value.dtype):
            raise ArgumentError(
                f"{path} is of {value.dtype}: only numbers with a point have gradients; convert it "
                "with .astype('float32'), or leave it out of wrt"
            )
        given = value.view()
        return given, add(given)
    found = children(value)
    if found is None:
        raise ArgumentError(
            f"{path} is {type(value).__name__} {value!r:.40}: gradients are taken of arrays, "
            "modules, and dicts, lists and tuples of them; convert it with kw.asarray()"
        )
    pairs = [_leaves(each, f"{path}[{key!r}]", add) for key, each in found]
    return rebuilt(value, [a for a, _ in pairs]), rebuilt(value, [b for _, b in pairs])


_NARROW = ("bfloat16", "float8_e4m3fn", "float8_e5m2")


def is_real_or_complex(dtype: Any) -> bool:
    return dtype.kind in "fc" or dtype.name in _NARROW


def module_leaves(module: Any, path: str, add: Callable[[Array], Any]) -> dict[str, Any]:
    """The leaves of a module's parameters of floating-point numbers, in nested dicts as those of
    trainable_parameters()."""

    return _float_leaves(module.trainable_parameters(), add)


def _float_leaves(part: dict[str, Any], add: Callable[[Array], Any]) -> dict[str, Any]:
    made = {}
    for key, each in part.items():
        if isinstance(each, dict):
            made[key] = _float_leaves(each, add)
        elif is_real_or_complex(each.dtype):
            made[key] = add(each)
    return made


def filled(nest: Any, values: dict[Any, Any]) -> Any:
    """The nest with values[leaf] in the place of each leaf."""
    found = children(nest)
    if found is None:
        return values[nest]
    return rebuilt(nest, [filled(each, values) for _, each in found])
