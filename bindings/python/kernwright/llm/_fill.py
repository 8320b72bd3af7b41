"""Parameters filled from the tensors of files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import kernwright as kw
from kernwright._core import Array
from kernwright.llm._errors import ModelError
from kernwright.llm._names import CHANGES, Place, place_of
from kernwright.llm._tensors import Tensors
from kernwright.llm.models._layers import Unread
from kernwright.nn import Module

__all__ = ["fill", "fill_random", "unread_parameters"]

_SHOWN = 12  # names of each list in a message
# Buffers that some files keep beside the parameters.
_BUFFERS = re.compile(
    r".*\.rotary_emb\.inv_freq|.*\.attn\.(masked_)?bias|.*\.h\.[0-9]+\.attn\.bias"
)


class _Slot(NamedTuple):
    """Where a parameter stands that is still to be read."""

    holder: Any
    key: Any
    unread: Unread


class _Target(NamedTuple):
    """What one tensor fills, and the shape that it has then."""

    place: Place
    view: Array
    shape: tuple[int, ...]


def unread_parameters(module: Module) -> dict[str, _Slot]:
    """The parameters of a module that are still to be read, by their paths; one that stands at
    several places has several paths.

    >>> from kernwright import llm
    >>> from kernwright.llm import _fill
    >>> _fill.unread_parameters(llm.models.Linear(4, 8))["weight"].unread.shape
    (8, 4)
    """
    return dict(_walk(module, ""))


def _walk(value: Any, path: str) -> Iterator[tuple[str, _Slot]]:
    parts: Any = ()
    if isinstance(value, Module):
        parts = [(k, k, v) for k, v in vars(value).items() if not k.startswith("_")]
    elif isinstance(value, dict):
        parts = [(str(k), k, v) for k, v in value.items()]
    elif isinstance(value, list):
        parts = [(str(i), i, v) for i, v in enumerate(value)]
    for name, key, each in parts:
        full = f"{path}.{name}" if path else name
        if isinstance(each, Unread):
            yield full, _Slot(value, key, each)
        else:
            yield from _walk(each, full)


def _allocated(slots: Mapping[str, _Slot], dtype: str, device: Any) -> dict[str, Array]:
    """An array for each parameter, put into its place; tied ones are one."""
    made: dict[int, Array] = {}
    arrays = {}
    for path, (holder, key, unread) in slots.items():
        if id(unread) not in made:
            made[id(unread)] = kw.empty(unread.shape, unread.dtype or dtype, device=device)
        arrays[path] = made[id(unread)]
        if isinstance(holder, Module):
            setattr(holder, key, arrays[path])
        else:
            holder[key] = arrays[path]
    return arrays


def fill(module: Any, tensors: Tensors, dtype: str, device: Any) -> None:
    """Reads each parameter of `module` from the tensor that module.names gives it.

    Every tensor is used once and every parameter is filled, or one ModelError lists what is
    missing, unexpected or of another shape, before anything is read.
    """
    slots = unread_parameters(module)
    targets = _matched(module, slots, tensors)
    arrays = _allocated(slots, dtype, device)
    direct: dict[str, Array] = {}
    for name, place in targets.items():
        view = _view(module, arrays[place.path], place)
        same = tensors.dtype(name) == view.dtype.name and view.is_contiguous
        if same and place.change is None:
            direct[name] = view
        else:
            numbers = tensors.read(name)
            if place.change is not None:
                numbers = CHANGES[place.change](numbers)
            view[...] = numbers.astype(view.dtype)
    tensors.read_into(direct)


def fill_random(module: Module, dtype: str, device: Any, seed: int = 0) -> None:
    """Draws each parameter: normal numbers of deviation 0.02, and 1 for weights of norms."""
    slots = unread_parameters(module)
    arrays = _allocated(slots, dtype, device)
    drawn: set[int] = set()
    for number, (path, array) in enumerate(arrays.items()):
        if id(array) in drawn:
            continue
        drawn.add(id(array))
        if array.ndim == 1:
            array[...] = 1 if path.endswith("norm.weight") else 0
        else:
            array[...] = kw.random.normal(
                array.shape, array.dtype, std=0.02, seed=seed * 2**20 + number, device=device
            )


def _matched(module: Any, slots: Mapping[str, _Slot], tensors: Tensors) -> dict[str, Place]:
    """The place of each tensor that is read. Raises ModelError."""
    first: dict[int, str] = {}
    for path, slot in slots.items():
        first.setdefault(id(slot.unread), path)
    places: dict[str, Place] = {}
    wrong: list[str] = []
    unexpected: list[str] = []
    for name in tensors.names():
        place = place_of(name, module.names)
        if place is None or place.path not in slots:
            if not _BUFFERS.fullmatch(name):
                unexpected.append(name)
            continue
        if first[id(slots[place.path].unread)] != place.path:
            continue  # a tied parameter under its second name
        expected = _expected_shape(module, slots[place.path].unread, place)
        shape = tensors.shape(name)
        if place.change is not None and place.change.endswith("T"):
            shape = (*shape[:-2], *shape[-2:][::-1])
        if shape != expected:
            wrong.append(f"{name} is {tensors.shape(name)}, and {place.path} takes {expected}")
        places[name] = place
    missing = _missing(module, slots, first, places)
    problems = {"missing": missing, "unexpected": sorted(unexpected), "wrong shapes": wrong}
    if any(problems.values()):
        listed = "; ".join(f"{title}: {_listed(each)}" for title, each in problems.items() if each)
        raise ModelError(f"{tensors.source} does not fit {type(module).__name__}: {listed}")
    return places


def _missing(
    module: Any, slots: Mapping[str, _Slot], first: Mapping[int, str], places: Mapping[str, Place]
) -> list[str]:
    """What no tensor fills: a parameter, or elements of one, told by how many lack."""
    filled: dict[str, int] = {}
    for place in places.values():
        shape = _expected_shape(module, slots[place.path].unread, place)
        filled[place.path] = filled.get(place.path, 0) + _size(shape)
    lacking = []
    for path in first.values():
        size, found = _size(slots[path].unread.shape), filled.get(path, 0)
        if found < size:
            parts = "" if found == 0 else f" ({size - found} of its {size} numbers)"
            lacking.append(path + parts)
    return lacking


def _owner(module: Any, path: str) -> Any:
    """The module that has the parameter."""
    found = module
    for key in path.split(".")[:-1]:
        found = found[int(key)] if isinstance(found, list) else getattr(found, key)
    return found


def _expected_shape(module: Any, unread: Unread, place: Place) -> tuple[int, ...]:
    shape = unread.shape if place.entry is None else unread.shape[1:]
    if place.part is not None:
        rows = _owner(module, place.path).rows_of(place.part)
        shape = (rows.stop - rows.start, *shape[1:])
    return shape


def _view(module: Any, array: Array, place: Place) -> Array:
    if place.entry is not None:
        array = array[place.entry]
    if place.part is not None:
        array = array[_owner(module, place.path).rows_of(place.part)]
    return array


def _size(shape: tuple[int, ...]) -> int:
    size = 1
    for extent in shape:
        size *= extent
    return size


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} more"
