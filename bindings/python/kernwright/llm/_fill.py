"""Parameters filled from the tensors of files."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import kernwright as kw
from kernwright._core import Array
from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.llm._errors import ModelError
from kernwright.llm._names import (
    CHANGES,
    MOVES,
    MissingNames,
    Names,
    Place,
    changed_shape,
    place_of,
)
from kernwright.llm._tensors import Tensors
from kernwright.llm._weights.parameters import Parameters, Slot, array_sizes
from kernwright.llm.models._layers import Linear, Parts
from kernwright.nn import Module
from kernwright.nn._scaled_weight import ScaledWeight

__all__ = ["NUMBERS", "Few", "Filling", "RandomFilling", "itemsize", "quantise", "takes_format"]

_BATCH_BYTES = 128 << 20  # of tensors that are read before they are changed
_SHOWN = 12  # names of each list in a message
# Buffers that some files keep beside the parameters.
_BUFFERS = re.compile(r".*\.rotary_emb\.inv_freq|.*\.attn\.(masked_)?bias")
NUMBERS = ("float64", "float32", "float16", "bfloat16")
_NO_NUMBERS = re.compile(r"u?int[0-9]+|bool|complex[0-9]+")  # which no format of weights is


class Few(NamedTuple):
    """A tensor of which a format makes few bits while loading: the length of its rows, and its
    numbers (rows, columns) when they are asked for."""

    columns: int
    numbers: Callable[[], Array]


class _Formatted(Parameters):
    """Parameters of a dtype; weights of linear layers come to `format`, where there is one."""

    def __init__(self, module: Module, dtype: str, device: Any, format: str | None) -> None:
        super().__init__(module)
        self.dtype, self.device, self.format = dtype, device, format

    def nbytes(self, path: str) -> int:
        """About how many bytes a parameter will have; exactly for numbers."""
        unread = self.slots[path].unread
        format = self._format_of(path)
        if format is not None:
            return int(math.prod(unread.shape) * quantised_share(format, self.device))
        return math.prod(unread.shape) * itemsize(unread.dtype or self.dtype)

    def _format_of(self, path: str) -> str | None:
        """The format that a parameter comes to; None for those that keep their numbers."""
        return self.format if takes_format(path, self.slots[path]) else None


class Filling(_Formatted):
    """A module on its way from tensors: the places of all, and the parameters that are made.

    Every tensor is used once and every parameter is filled, or one ModelError lists what is
    missing, unexpected or of another shape, before anything is read. Weights of linear layers stay
    in the format of the file, or come to `format` one by one; the last product keeps its numbers.
    `names` tells which parameter a tensor fills.
    """

    def __init__(
        self, module: Any, tensors: Tensors, names: Names, dtype: str, device: Any,
        format: str | None,
    ) -> None:  # fmt: skip
        super().__init__(module, dtype, device, format)
        self.tensors = tensors
        self.places_in = self._matched(names)
        self.names: dict[str, list[str]] = {}
        for name, place in self.places_in.items():
            self.names.setdefault(place.path, []).append(name)

    @property
    def source(self) -> str:
        """The files, for messages."""
        return self.tensors.source

    def nbytes(self, path: str) -> int:
        """About how many bytes a parameter will have; exactly for numbers."""
        names = self.names[path]
        if _is_weight(self.slots[path]) and self._are_few_bits(names):
            return sum(self.tensors.nbytes(name) for name in names)
        return super().nbytes(path)

    def fill(self, layer: int | None) -> None:
        """Makes and fills the parameters of a layer, or those outside of all: weights that need
        no change are read into their places, all others some at a time into arrays of their own."""
        direct: dict[str, Array] = {}
        batch: list[str] = []
        size = 0
        for path in self.paths(layer):
            batch.append(path)
            if not self._is_direct(path):
                size += sum(self.tensors.nbytes(name) for name in self.names[path])
            if size >= _BATCH_BYTES:
                self._make(batch, direct)
                batch, size = [], 0
        self._make(batch, direct)
        self.tensors.prefetch([])  # lets go of what it read
        self.tensors.read_into(direct)

    def _make(self, paths: list[str], direct: dict[str, Array]) -> None:
        self.tensors.prefetch([
            self._ordered(path) for path in paths if not self._is_direct(path)
        ])  # fmt: skip
        for path in paths:
            names = self._ordered(path)
            packed = self._packed(path, names)
            self.put(path, self._numbers(path, names, direct) if packed is None else packed)

    def _are_few_bits(self, names: list[str]) -> bool:
        return all(self.tensors.dtype(name) not in NUMBERS for name in names)

    def _is_direct(self, path: str) -> bool:
        """Whether tensors of this parameter are read into their places as they are."""
        if self._format_of(path) is not None:
            return False
        dtype = self.slots[path].unread.dtype or self.dtype
        return all(
            self.tensors.dtype(name) == dtype and self.places_in[name].change is None
            for name in self.names[path]
        )

    def _ordered(self, path: str) -> list[str]:
        """The tensors of a parameter, in the order of its parts."""
        holder = self.slots[path].holder
        if not isinstance(holder, Linear):
            return self.names[path]
        order = {part: i for i, part in enumerate(holder.part_names())}
        return sorted(self.names[path], key=lambda n: order.get(self.places_in[n].part or "", 0))

    def _packed(self, path: str, names: list[str]) -> Any:
        """A linear layer's weight in few bits, where the file has such or the caller wants one."""
        if not _is_weight(self.slots[path]):
            return None
        changed = any(self.places_in[name].change for name in names)
        if not changed and self._are_few_bits(names):
            whole = self._read(names, self.tensors.packed, names)
            if whole is not None:
                return whole
            each = {
                self.places_in[name].part or "": self._read([name], self.tensors.packed, [name])
                for name in names
            }
            if all(weight is not None for weight in each.values()):
                return Parts(each)
        format = self._format_of(path)
        return None if format is None else quantise(self._numbers(path, names, None), format, path)

    def _numbers(self, path: str, names: list[str], direct: dict[str, Array] | None) -> Array:
        """An array that is filled at once, or later by those that go to `direct`."""
        unread = self.slots[path].unread
        made = kw.empty(unread.shape, unread.dtype or self.dtype, device=self.device)
        for name in names:
            place = self.places_in[name]
            view = self._view(made, place)
            same = self.tensors.dtype(name) == view.dtype.name and view.is_contiguous
            if same and place.change is None and direct is not None:
                direct[name] = view
                continue
            view[...] = self._changed(name, view.dtype.name)
        return made

    def _changed(self, name: str, dtype: str) -> Array:
        """The numbers of a tensor, through its change, in a dtype."""
        change = self.places_in[name].change
        moves = change is None or change in MOVES
        wide = dtype if moves else "float32"
        numbers = self._read([name], self.tensors.numbers, name, wide)
        return (numbers if change is None else CHANGES[change](numbers)).astype(dtype)

    def _read(self, names: list[str], read: Any, what: Any, dtype: str | None = None) -> Any:
        """read(what, dtype). Raises ModelError for formats that are not read, and for tensors of a
        weight that do not fit each other."""
        try:
            return read(what, dtype or self.dtype)
        except ModelError:
            raise
        except (ArgumentError, InvalidArgument, IndexError) as error:
            raise ModelError(f"{self.tensors.source}: {', '.join(names)}: {error}") from error

    def few(self) -> dict[str, Few]:
        """The tensors of which fill() makes few bits if it is given a format."""
        paths = {
            path
            for path, names in self.names.items()
            if takes_format(path, self.slots[path])
            and any(self.tensors.dtype(name) in NUMBERS for name in names)
        }
        return {
            name: Few(
                self._expected_shape(place)[-1], functools.partial(self._changed, name, self.dtype)
            )
            for name, place in self.places_in.items()
            if place.path in paths
        }

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
            dtype = self.tensors.dtype(name)
            few_bits = dtype not in NUMBERS
            if _NO_NUMBERS.fullmatch(dtype):
                wrong.append(f"{name} is of {dtype}, and {place.path} takes float numbers")
            elif few_bits and place.change in ("T", "row") and len(found) == 2:
                place = place._replace(change=None)  # weights of few bits are (n, k) in all files
            if changed_shape(found, place.change) != expected:
                wrong.append(f"{name} is {found}, and {place.path} takes {expected}")
            places[name] = place
        problems = {
            "missing": self._missing(places, names), "unexpected": sorted(unexpected),
            "wrong": wrong,
        }  # fmt: skip
        if any(problems.values()):
            listed = "; ".join(
                f"{kind}: {_listed(each)}" for kind, each in problems.items() if each
            )
            raise ModelError(
                f"{self.tensors.source} does not fit {type(self.module).__name__}: {listed}"
            )
        return places

    def _missing(self, places: Mapping[str, Place], names: Names) -> list[str]:
        """The tensors that are not there, with the parameter that each would fill."""
        filled: dict[str, int] = {}
        for place in places.values():
            size = math.prod(self._expected_shape(place))
            filled[place.path] = filled.get(place.path, 0) + size
        sizes = {path: self.slots[path].unread.shape for path in self.first.values()}
        short = [path for path, shape in sizes.items() if filled.get(path, 0) < math.prod(shape)]
        if not short:
            return []
        missing, lacking = MissingNames(names, self.tensors.names()), []
        for path in short:
            found = missing.lacking(path, sizes[path][0]) or [path]
            lacking += [name if name == path else f"{name} (for {path})" for name in found]
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


def _is_weight(slot: Slot) -> bool:
    return isinstance(slot.holder, Linear) and slot.key == "weight"


def takes_format(path: str, slot: Slot) -> bool:
    """Whether a format makes few bits of a parameter: not of the last product's, nor of what
    chooses experts."""
    chooses = path.endswith(("router.weight", "shared_gate.weight"))
    return _is_weight(slot) and not chooses and not path.startswith("head.")


def itemsize(dtype: str) -> int:
    """The bytes of an element."""
    return int(kw.empty((0,), dtype).dtype.itemsize)


@functools.cache
def quantised_share(format: str, device: Any) -> float:
    """The bytes of a weight in few bits for each of its numbers."""
    sample = kw.zeros((64, 1024), device=device)
    try:
        return sum(array_sizes(quantise(sample, format, "a weight"))) / sample.size
    except ModelError:
        return float(itemsize("float32"))  # the first weight of the model will say why


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


class RandomFilling(_Formatted):
    """A module whose parameters are drawn: normal numbers of deviation 0.02, 1 for weights of norms
    and 0 for other vectors."""

    def __init__(
        self, module: Module, dtype: str, device: Any, format: str | None, source: str
    ) -> None:
        super().__init__(module, dtype, device, format)
        self.source = source
        self._numbers = {path: number for number, path in enumerate(self.slots)}

    def fill(self, layer: int | None) -> None:
        """Draws the parameters of a layer, or those outside of all."""
        for path in self.paths(layer):
            unread = self.slots[path].unread
            kind = unread.dtype or self.dtype
            if len(unread.shape) == 1:
                value = 1 if path.endswith("norm.weight") else 0
                made: Any = kw.full(unread.shape, value, kind, device=self.device)
            else:
                made = kw.random.normal(
                    unread.shape, kind, std=0.02, seed=self._numbers[path], device=self.device
                )
                format = self._format_of(path)
                made = made if format is None else quantise(made, format, path)
            self.put(path, made)


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} more"
