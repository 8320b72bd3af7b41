"""Parameters filled from the tensors of files."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import kernwright as kw
from kernwright._core import Array
from kernwright.llm._errors import ModelError
from kernwright.llm._names import CHANGES, MOVES, Names, Place, changed_shape, place_of
from kernwright.llm._tensors import Tensors
from kernwright.llm.models._layers import Linear, Parts, Unread
from kernwright.nn import Module
from kernwright.nn._modules.linear import ScaledWeight

__all__ = ["fill", "fill_random", "quantise", "unread_parameters"]

_SHOWN = 12  # names of each list in a message
# Buffers that some files keep beside the parameters.
_BUFFERS = re.compile(r".*\.rotary_emb\.inv_freq|.*\.attn\.(masked_)?bias")
_NUMBERS = ("float64", "float32", "float16", "bfloat16")


class _Slot(NamedTuple):
    """Where a parameter stands that is still to be read."""

    holder: Any
    key: Any
    unread: Unread


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


class _Filling:
    """A module on its way from tensors: the places of all, and the parameters that are made."""

    def __init__(
        self, module: Any, tensors: Tensors, names: Names, dtype: str, device: Any,
        format: str | None,
    ) -> None:  # fmt: skip
        self.module, self.tensors, self.dtype, self.device = module, tensors, dtype, device
        self.format = format
        self.slots = unread_parameters(module)
        self.first: dict[int, str] = {}  # the first path of each parameter
        for path, slot in self.slots.items():
            self.first.setdefault(id(slot.unread), path)
        self.places = self._matched(names)

    def run(self) -> None:
        """Makes and fills all parameters."""
        by_path: dict[str, list[str]] = {}
        for name, place in self.places.items():
            by_path.setdefault(place.path, []).append(name)
        direct: dict[str, Array] = {}
        for path in self.first.values():
            names = by_path[path]
            packed = self._packed(path, names)
            if packed is None:
                packed = self._numbers(path, names, direct)
            self._put(path, packed)
        self.tensors.read_into(direct)

    def _packed(self, path: str, names: list[str]) -> Any:
        """A linear layer's weight in few bits, where the file has such or the caller wants one."""
        slot = self.slots[path]
        if not isinstance(slot.holder, Linear) or slot.key != "weight":
            return None
        layer = slot.holder
        order = {part: i for i, part in enumerate(layer.part_names())}
        names = sorted(names, key=lambda name: order.get(self.places[name].part or "", 0))
        changed = any(self.places[name].change for name in names)
        if not changed and all(self.tensors.dtype(name) not in _NUMBERS for name in names):
            whole = self.tensors.packed(names, self.dtype)
            if whole is not None:
                return whole
            each = {self.places[n].part or "": self.tensors.packed([n], self.dtype) for n in names}
            if all(weight is not None for weight in each.values()):
                return Parts(each)
        if self.format is None or path.startswith("head."):
            return None
        return quantise(self._numbers(path, names, None), self.format, path)

    def _numbers(self, path: str, names: list[str], direct: dict[str, Array] | None) -> Array:
        """An array that is filled at once, or later by those that go to `direct`."""
        unread = self.slots[path].unread
        made = kw.empty(unread.shape, unread.dtype or self.dtype, device=self.device)
        for name in names:
            place = self.places[name]
            view = self._view(made, place)
            same = self.tensors.dtype(name) == view.dtype.name and view.is_contiguous
            if same and place.change is None and direct is not None:
                direct[name] = view
                continue
            moves = place.change is None or place.change in MOVES
            numbers = self.tensors.numbers(name, view.dtype.name if moves else "float32")
            if place.change is not None:
                numbers = CHANGES[place.change](numbers)
            view[...] = numbers.astype(view.dtype)
        return made

    def _put(self, path: str, made: Any) -> None:
        """The parameter at all of its places."""
        for holder, key, unread in self.slots.values():
            if unread is self.slots[path].unread:
                if isinstance(holder, Module):
                    setattr(holder, key, made)
                else:
                    holder[key] = made

    def _matched(self, names: Names) -> dict[str, Place]:
        """The place of each tensor that is read. Raises ModelError."""
        places: dict[str, Place] = {}
        wrong: list[str] = []
        unexpected: list[str] = []
        for name in self.tensors.names():
            place = place_of(name, names)
            if place is None or place.path not in self.slots:
                if not _BUFFERS.fullmatch(name):
                    unexpected.append(name)
                continue
            if self.first[id(self.slots[place.path].unread)] != place.path:
                continue  # a tied parameter under its second name
            expected, found = self._expected_shape(place), self.tensors.shape(name)
            if changed_shape(found, place.change) != expected:
                wrong.append(f"{name} is {found}, and {place.path} takes {expected}")
            places[name] = place
        problems = {
            "missing": self._missing(places), "unexpected": sorted(unexpected),
            "wrong shapes": wrong,
        }  # fmt: skip
        if any(problems.values()):
            listed = "; ".join(
                f"{kind}: {_listed(each)}" for kind, each in problems.items() if each
            )
            raise ModelError(
                f"{self.tensors.source} does not fit {type(self.module).__name__}: {listed}"
            )
        return places

    def _missing(self, places: Mapping[str, Place]) -> list[str]:
        """What no tensor fills: a parameter, or elements of one, told by how many lack."""
        filled: dict[str, int] = {}
        for place in places.values():
            size = math.prod(self._expected_shape(place))
            filled[place.path] = filled.get(place.path, 0) + size
        lacking = []
        for path in self.first.values():
            size, found = math.prod(self.slots[path].unread.shape), filled.get(path, 0)
            if found < size:
                parts = "" if found == 0 else f" ({size - found} of its {size} numbers)"
                lacking.append(path + parts)
        return lacking

    def _expected_shape(self, place: Place) -> tuple[int, ...]:
        shape = self.slots[place.path].unread.shape
        if place.entry is not None:
            shape = shape[1:]
        if place.part is not None:
            rows = self.slots[place.path].holder.rows_of(place.part)
            axis = _row_axis(place, len(shape))
            shape = (*shape[:axis], rows.stop - rows.start, *shape[axis + 1 :])
        return shape

    def _view(self, array: Array, place: Place) -> Array:
        if place.entry is not None:
            array = array[place.entry]
        if place.part is not None:
            rows = self.slots[place.path].holder.rows_of(place.part)
            array = array[(slice(None),) * _row_axis(place, array.ndim) + (rows,)]
        return array


def _row_axis(place: Place, axes: int) -> int:
    """The axis of outputs: the last of biases, and the one in front of it of weights."""
    return axes - 1 if place.path.endswith("bias") else axes - 2


def fill(
    module: Module, tensors: Tensors, names: Names, dtype: str, device: Any,
    format: str | None = None,
) -> None:  # fmt: skip
    """Reads each parameter of `module` from the tensor that `names` gives it.

    Every tensor is used once and every parameter is filled, or one ModelError lists what is
    missing, unexpected or of another shape, before anything is read. Weights of linear layers stay
    in the format of the file, or come to `format` one by one; the last product keeps its numbers.
    """
    _Filling(module, tensors, names, dtype, device, format).run()


def quantise(weight: Array, format: str, path: str) -> Any:
    """A weight for kw.nn.linear() in few bits. Raises ModelError for unknown formats, and where
    rows have no whole number of blocks."""
    quant = kw.nn.quant
    rows = {"int8": "int8", "fp8": "float8_e4m3fn"}
    if format in rows:
        return ScaledWeight(*kw.nn.quantize_rows(weight, rows[format]))
    try:
        rows_and_columns = (weight.shape[0], weight.shape[1])
        return quant.pack(quant.quantize(weight, format), format, shape=rows_and_columns)
    except kw.errors.InvalidArgument as error:
        known = ", ".join([*rows, *quant.formats()])
        raise ModelError(f"{path} {weight.shape} as {format}: {error} (formats: {known})") from None


def fill_random(
    module: Module, dtype: str, device: Any, format: str | None = None, seed: int = 0
) -> None:
    """Draws each parameter: normal numbers of deviation 0.02, and 1 for weights of norms."""
    made: dict[int, Any] = {}
    for number, (path, (holder, key, unread)) in enumerate(unread_parameters(module).items()):
        if id(unread) not in made:
            kind = unread.dtype or dtype
            if len(unread.shape) == 1:
                value = 1 if path.endswith("norm.weight") else 0
                array: Any = kw.full(unread.shape, value, kind, device=device)
            else:
                array = kw.random.normal(
                    unread.shape, kind, std=0.02, seed=seed * 2**20 + number, device=device
                )
                is_linear = isinstance(holder, Linear) and key == "weight"
                if format is not None and is_linear and not path.startswith("head."):
                    array = quantise(array, format, path)
            made[id(unread)] = array
        if isinstance(holder, Module):
            setattr(holder, key, made[id(unread)])
        else:
            holder[key] = made[id(unread)]


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} more"
