"""trace(): one thread of a kernel on the simulated device, line by line."""

from __future__ import annotations

import dataclasses
import html
import json
import operator
import pathlib
import struct
from collections.abc import Sequence
from types import TracebackType
from typing import Any, SupportsIndex

from kernwright import _core
from kernwright._sim import watch as _watch
from kernwright._support import html as _html
from kernwright._support.files import told_of
from kernwright._support.typed import typed
from kernwright._support.words import counted
from kernwright.errors import ArgumentError, InvalidArgument

_Value = int | float | bool | tuple[int | float, ...]


@dataclasses.dataclass(frozen=True)
class Write:
    """A register written by an instruction.

    `type` is PTX's word for the value ("f32", "s32", "pred", "f16x2"; "b32" where the instruction
    does not say). `before` is None at the thread's first write of the register. Values are int,
    float, bool, or a tuple for packed types; `text` shows `after` as a listing does.
    """

    register: str
    type: str
    before: _Value | None
    after: _Value
    text: str


@dataclasses.dataclass(frozen=True)
class Access:
    """Memory touched by a load, store, atomic operation or asynchronous copy of the thread.

    `what` is "load", "store" or "atomic", `space` "global", "shared", "local", "param" or "const".
    `before` and `after` are the elements, of `type`; `after` is empty for loads, both where the
    memory cannot be accessed.
    """

    what: str
    space: str
    address: int
    bytes: int
    type: str
    before: tuple[_Value, ...]
    after: tuple[_Value, ...]


@dataclasses.dataclass(frozen=True)
class Step:
    """One instruction on the way of the thread.

    `line` counts the kernel's text from 1, `file_line` the file around the text; 0 for an unknown
    line. `source` is the text of the line. `predicated_off`: its guard kept the thread from doing
    it. `taken`: whether the thread jumped, None for instructions other than branches. `returned`:
    the part of a call after the return. `complete` is False where the launch stopped in the
    instruction. `printed` is the thread's output in it.
    """

    index: int
    file: str
    line: int
    file_line: int
    source: str
    function: str
    depth: int
    ptx_line: int
    instruction: str
    predicated_off: bool
    taken: bool | None
    returned: bool
    complete: bool
    writes: tuple[Write, ...]
    accesses: tuple[Access, ...]
    printed: str


def _value(type_: str, bits: str) -> _Value:
    """The number in the bits."""
    number = int(bits, 16)
    if type_ == "pred":
        return number != 0
    if type_.endswith("x2") and type_[0] in "fbsu" and type_ not in ("e4m3x2", "e5m2x2"):
        low, high = (_value(type_[:-2], hex(number >> shift & 0xFFFF)) for shift in (0, 16))
        assert not isinstance(low, tuple) and not isinstance(high, tuple)
        return (low, high)
    if type_ == "f16":
        return float(struct.unpack("<e", struct.pack("<H", number & 0xFFFF))[0])
    if type_ == "bf16":
        return float(struct.unpack("<f", struct.pack("<I", (number & 0xFFFF) << 16))[0])
    if type_ in ("f32", "tf32"):
        return float(struct.unpack("<f", struct.pack("<I", number & 0xFFFFFFFF))[0])
    if type_ == "f64":
        return float(struct.unpack("<d", struct.pack("<Q", number))[0])
    width = int(type_[1:]) if type_[1:].isdigit() else 128
    number &= (1 << width) - 1
    return number - (1 << width) if type_[0] == "s" and number >> (width - 1) else number


def _write(data: dict[str, Any]) -> Write:
    before, after = data["before"], data["after"]
    return Write(
        data["register"],
        data["type"],
        None if before is None else _value(data["type"], before["bits"]),
        _value(data["type"], after["bits"]),
        after["text"],
    )


def _access(data: dict[str, Any]) -> Access:
    before, after = (
        tuple(_value(data["type"], value["bits"]) for value in data[when])
        for when in ("before", "after")
    )
    return Access(
        data["what"], data["space"], data["address"], data["bytes"], data["type"], before, after
    )


class Trace(_watch.Watch[_core._Trace]):
    """What one thread did in one launch; made by trace(), complete when its `with` block ended.

    print() shows each executed line once. Below it are its instructions, with the registers and
    memory that they changed.
    """

    def __init__(self, made: _core._Trace, kernel: _core.Kernel) -> None:
        super().__init__(made, "a trace")
        self._kernel = kernel
        self._source = _watch.source_of(kernel)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        super().__exit__(kind, value, trace)
        if kind is None:
            self._check()

    def _check(self) -> None:
        """Raises when there was nothing to trace."""
        data = self._data()
        name, launches = self._kernel.name, data["launches"]
        if data["outside"]:
            raise InvalidArgument(
                f"there is no thread {tuple(data['thread'])} of block {tuple(data['block'])}: "
                f"{name} was launched with a grid of {tuple(data['grid'])} blocks of "
                f"{tuple(data['block_shape'])} threads"
            )
        if launches <= data["launch"]:
            raise InvalidArgument(
                f"{name} was launched {launches} time{'' if launches == 1 else 's'} on the "
                f"simulated device within the block, and launch {data['launch']} (counted from 0) "
                "was to be traced"
            )

    def _data(self) -> dict[str, Any]:
        name, _, first_line = self._source
        data: dict[str, Any] = json.loads(self._made.json(name, first_line))
        return data

    @property
    def steps(self) -> list[Step]:
        """The instructions of the thread, in order, within `skip` and `limit`."""
        lines = _watch.Lines(_watch.texts_of(self._kernel))
        return [self._step(data, lines) for data in self._data()["steps"]]

    @staticmethod
    def _step(data: dict[str, Any], lines: _watch.Lines) -> Step:
        fields: dict[str, Any] = {
            field.name: data.get(field.name) for field in dataclasses.fields(Step)
        }
        fields["file_line"] = data["line"] and data["line"] + data["first_line"] - 1
        fields["source"] = lines.find(data["file"], data["line"], data["first_line"])
        fields["writes"] = tuple(map(_write, data["writes"]))
        fields["accesses"] = tuple(map(_access, data["accesses"]))
        return Step(**fields)

    @property
    def total(self) -> int:
        """Steps of the thread, skipped and left out ones included."""
        return int(self._data()["total"])

    @property
    def printed(self) -> str:
        """What the thread printed in the steps."""
        return "".join(step.printed for step in self.steps)

    @property
    def fault(self) -> str:
        """What stopped the launch, whichever thread did it; empty when it ended well."""
        return self._data()["fault"] or ""

    def to_json(self) -> str:
        """An object with the thread, the launch, and `steps` with the fields of Step."""
        data = self._data()
        data["steps"] = [dataclasses.asdict(step) for step in self.steps]
        return json.dumps(data, indent=2)

    def to_text(self) -> str:
        """The listing, as print() shows it."""
        return self._made.text(*self._source, _watch.texts_of(self._kernel)[1:])

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        title = f"Trace of {self._kernel.name}: {counted(self.total, 'step')}"
        return _html.box(title, more=_html.part(f"<pre>{html.escape(self.to_text())}</pre>"))

    def save(self, path: str | pathlib.Path) -> None:
        """Writes JSON to a path with the ending .json, else the listing."""
        path = pathlib.Path(_core._path(path, "save()"))
        text = self.to_json() if path.suffix == ".json" else self.to_text()
        with told_of(path, "written"):
            path.write_text(text, encoding="utf-8")

    def __repr__(self) -> str:
        return f"<Trace of {self._kernel.name}: {self.total} steps>"


_Place = SupportsIndex | Sequence[SupportsIndex]


def _index(value: _Place, what: str) -> tuple[int, int, int]:
    """One to three numbers, x first; missing ones are 0."""
    try:
        parts = (
            [operator.index(part) for part in value]
            if isinstance(value, Sequence)
            else [operator.index(value)]
        )
    except TypeError:
        raise ArgumentError(f"{what} is an int or up to three of them, got {value!r}") from None
    if not 1 <= len(parts) <= 3 or not all(0 <= part < 2**32 for part in parts):
        raise InvalidArgument(f"{what} is one to three numbers from 0 on, got {value!r}")
    x, y, z = (*parts, 0, 0)[:3]
    return x, y, z


def _count(value: SupportsIndex, what: str) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise ArgumentError(f"{what} is an int, got {value!r}") from None
    if not 0 <= number < 2**63:
        raise InvalidArgument(f"{what} is a number from 0 on, got {value!r}")
    return number


def trace(kernel: Any, *places: Any, **options: Any) -> Any:
    """trace(kernel, block=0, thread=0, *, launch=0, skip=0, limit=10000) records what one thread of
    a kernel executes: ``with kw.trace(k, block=(0, 1), thread=5) as t: k[grid, block](...)``, then
    ``print(t)`` and ``t.steps``. Of an array, trace(x, offset=0, axis1=0, axis2=1, dtype=None,
    out=None) is NumPy's: the sum along a diagonal, as kw.diagonal() takes it, with dtypes of sum().

    `block` and `thread` are blockIdx and threadIdx: an int is x, as in launch brackets. `launch`
    says which launch of the kernel within the block is meant, from 0. Of the thread's instructions
    the first `skip` are passed over and at most `limit` kept; the listing says how many were left
    out. A launch that faults leaves a trace up to the fault. Launches of all threads on the device
    that is current at the beginning count; one trace at a time in a process. Needs the simulated
    device: InvalidArgument on a GPU, for a block or thread outside of the launch, and where the
    launch did not happen.

    >>> x = kw.zeros(64)
    >>> fill = kw.kernel("__global__ void fill(float* x) { x[threadIdx.x] = 1; }")
    >>> with kw.trace(fill, thread=3) as trace:
    ...     fill[1, 64](x)
    >>> trace
    <Trace of fill: 8 steps>
    >>> kw.trace(kw.asarray([[1, 2], [3, 4]])).item()
    5
    """
    if isinstance(kernel, _core.Array):
        from kernwright._array.composed.making import sum_of_diagonal

        return typed(sum_of_diagonal)(kernel, *places, **options)
    return typed(_of_thread)(kernel, *places, **options)


def _of_thread(
    kernel: _core.Kernel,
    block: _Place = 0,
    thread: _Place = 0,
    *,
    launch: SupportsIndex = 0,
    skip: SupportsIndex = 0,
    limit: SupportsIndex = 10000,
) -> Trace:
    """The record of one thread, still empty."""
    if not isinstance(kernel, _core.Kernel):
        raise ArgumentError(f"trace() takes a kernel, got {type(kernel).__name__}")
    made = _core._Trace(
        kernel,
        _index(block, "block"),
        _index(thread, "thread"),
        _count(launch, "launch"),
        _count(skip, "skip"),
        _count(limit, "limit"),
    )
    return Trace(made, kernel)
