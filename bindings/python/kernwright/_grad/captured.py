"""kw.captured: a function as graphs, one for each kind of call."""

from __future__ import annotations

import functools
import inspect
import itertools
import math
import types
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import kernwright as kw
from kernwright import _core
from kernwright._core import Array, Graph, GraphPool
from kernwright._grad import draws, nests  # transforms installs the handlers
from kernwright._grad.recording import extent_of, user_line, written_extents
from kernwright._support.choices import planned_by
from kernwright._support.cycles import require_no_cycle
from kernwright._support.modules import is_module
from kernwright.errors import ArgumentError, CaptureError
from kernwright.schedule._blocks import as_task, require_scheduler

__all__ = ["captured"]

_EAGER = 2  # calls before the graph is made
_KEPT = 32  # graphs of a function
_PACK = 16  # bytes of the widest access: kernels choose theirs, and so an order of sums, by it


def captured(
    f: Callable[..., Any], *, pool: GraphPool | None = None, scheduler: Any = None,
    qos: str | None = None,
) -> Callable[..., Any]:  # fmt: skip
    """A function that does what `f` does, from its third call on as one graph.

    The first two calls run `f`, the third captures its kernels in a graph, and later calls launch
    the graph without `f`. Results equal those of `f` in all bits (for a view with wide gaps: those
    of `f` with a contiguous copy). Calls with other shapes, dtypes, strides, structure or alignment
    (16 bytes) have graphs of their own; 32 are kept.

    Arguments are arrays, numbers, modules, and dicts, lists and tuples of these:

    - Elements of arrays are read in each call. Other arrays than in the capture are copied to those
      of the graph, and back if `f` writes to them.
    - Floats and ints may change: from the third call on they are arrays without axes inside of `f`.
      Bind an axis, a shape, a condition or an index to be checked by functools.partial().
    - NumPy scalars, bools, strings, and attributes and modes of modules: another value means
      another graph. So does an int beyond a limit of an integer type (127, 255). Values of
      closures and of other objects stay as in the third call.

    Random numbers continue from call to call. Calls with arrays that overlap in memory, and calls
    within a recording of gradients or another graph, run `f`.

    The next call overwrites arrays of the result: copy them to keep them. With a `pool`
    (kw.GraphPool) graphs share memory, so any launch of its graphs overwrites them. With a
    `scheduler` (kw.schedule.Scheduler) each call is a task of the class `qos` ("best_effort").

    Raises CaptureError, with file and line, if `f` reads from the device or copies from the host,
    or uses a stream that has not waited for the current one. Not for several threads; during the
    capture no other thread may wait for the device.

    >>> step = kw.captured(lambda x, a: kw.exp(x) * a)
    >>> [float(step(kw.zeros(3), a)[0]) for a in (1.0, 2.0, 3.0, 4.0)]
    [1.0, 2.0, 3.0, 4.0]
    """
    if not callable(f):
        raise ArgumentError(f"kw.captured() takes a function, got {type(f).__name__}")
    if any(kind(f) for kind in _NO_FUNCTIONS):
        raise ArgumentError(
            f"kw.captured() takes a function that is done when it returns: {f.__name__}() is async "
            "or has a yield"
        )
    if pool is not None and not isinstance(pool, GraphPool):
        raise ArgumentError(
            f"kw.captured(pool=) takes a kw.GraphPool or None, got {type(pool).__name__}"
        )
    if qos is not None and scheduler is None:
        raise ArgumentError(
            "kw.captured(qos=) is the class of calls as tasks: pass scheduler=, too"
        )
    made = _Captured(f, pool, require_scheduler(scheduler), qos or "best_effort")
    return functools.wraps(f, updated=())(made)


class _Captured:
    """A function and its graphs, by kinds of calls."""

    def __init__(
        self, f: Callable[..., Any], pool: GraphPool | None, scheduler: Any, qos: str
    ) -> None:
        self.function, self.pool = f, pool
        self._scheduler, self._qos = scheduler, qos
        self._plans: OrderedDict[Any, _Plan] = OrderedDict()

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if _core._is_recording() or _core._any_capture():
            return self.function(*args, **kwargs)
        if self._scheduler is None:
            return self._run(args, kwargs)
        name = getattr(self.function, "__name__", "captured")
        with as_task(self._scheduler, name, self._qos):
            return self._run(args, kwargs)

    def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        call = _Call(args, kwargs)
        if call.shares_memory():
            return self.function(*args, **kwargs)
        device = _core.current_device()
        key = (device.ordinal, device.is_simulated, *call.key)
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = _Plan(self.function, self.pool)
            if len(self._plans) > _KEPT:
                self._plans.popitem(last=False)
        else:
            self._plans.move_to_end(key)
        return plan.run(call)

    def __repr__(self) -> str:
        return f"<captured {getattr(self.function, '__name__', self.function)!s}>"

    @property
    def graphs(self) -> list[Graph]:
        """The graphs made so far, the one used last at the end."""
        return [plan.graph for plan in self._plans.values() if plan.graph is not None]


class _Call:
    """The arguments of a call: what tells its kind, its arrays, its numbers."""

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.args, self.kwargs = args, kwargs
        self.key: list[Any] = []
        self.arrays: list[Array] = []
        self.numbers: list[float | int] = []
        self.held: list[Any] = []  # known by identity: nothing else may get their memory
        try:
            self._read((args, kwargs), "")
        except RecursionError:
            require_no_cycle((*args, kwargs), "the arguments")
            raise

    def _read(self, value: Any, path: str) -> None:
        if isinstance(value, Array):
            place = (value.is_contiguous or value.strides, value.ptr % _PACK)
            self.key.append((path, value.shape, value.dtype, value.device.ordinal, place))
            self.arrays.append(value)
        elif is_number(value):
            self.key.append((path, type(value), _range_of(value)))
            self.numbers.append(value)
        elif (members := nests.children(value)) is not None:
            self.key.append((path, type(value), len(members)))
            for name, each in members:
                self._read(each, f"{path}.{name!r}")
        elif is_module(value):
            self._hold(path, value, *_state_of(value, self.held))
        elif isinstance(value, _BY_VALUE):
            self.key.append((path, type(value), repr(value)))
        else:
            self._hold(path, value)

    def _hold(self, path: str, value: Any, *more: Any) -> None:
        self.key.append((path, id(value), *more))
        self.held.append(value)

    def shares_memory(self) -> bool:
        """Whether two of the arrays overlap: a graph has them apart."""
        if len(self.arrays) < 2:
            return False
        extents = sorted(extent_of(array) for array in self.arrays if array.size)
        return any(b[0] < a[1] for a, b in itertools.pairwise(extents))


_BY_VALUE = (str, bytes, bool, type(None), np.dtype, np.generic, type, int, float, complex)
_TOLD = (*_BY_VALUE, dict, list, tuple)
_NO_FUNCTIONS = (
    inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction,
)  # fmt: skip


def is_number(value: Any) -> bool:
    """Whether a graph reads it from the device: a plain float, or an int of 64 bits."""
    return type(value) is float or (type(value) is int and -(2**63) <= value < 2**63)


def _range_of(number: float | int) -> tuple[bool, int] | None:
    """Between which limits of the integer types an int lies: errors and comparisons of an eager
    call depend on it. None for a float."""
    if isinstance(number, float):
        return None
    bits = (number if number >= 0 else ~number).bit_length()
    return number < 0, next(limit for limit in (7, 8, 15, 16, 31, 32, 63) if bits <= limit)


def _state_of(module: Any, held: list[Any]) -> list[Any]:
    """What a module computes with besides the numbers in its parameters."""
    found: list[Any] = []
    for _, each in module.named_modules():
        plain = [
            (k, v if isinstance(v, _BY_VALUE) else _plain(v))
            for k, v in vars(each).items() if isinstance(v, _TOLD)
        ]  # fmt: skip
        found += [each.training, each._frozen, repr(plain)]
    arrays = [array for _, array in module.named_parameters()]
    held += arrays
    return [*found, *(id(array) for array in arrays)]


def _plain(value: Any) -> Any:
    """What a module's attribute has of numbers and texts, in dicts and lists, too."""
    members = nests.children(value)
    if members is None:
        return value if isinstance(value, _BY_VALUE) else None
    return [(key, _plain(each)) for key, each in members if isinstance(each, _TOLD)]


class _Plan:
    """The calls of one kind: eager ones first, then a graph with its arrays."""

    def __init__(self, f: Callable[..., Any], pool: GraphPool | None) -> None:
        self.function, self.pool, self.calls = f, pool, 0
        self.graph: Graph | None = None
        self.choices: _core._PinnedChoices | None = None  # of kernels, which tuning may change
        self.arrays: list[Array | None] = []  # of the first call
        self.fixed: set[int] = set()  # the numbers of those equal in the second

    def run(self, call: _Call) -> Any:
        if self.calls < _EAGER:
            if self.calls == 0:
                self.arrays, self.held = list(call.arrays), call.held
                self.fixed = set(range(len(call.arrays)))
            else:  # the first call may have tuned
                self.choices = _core._PinnedChoices.now()
            self._compare(call)
            with planned_by(self.choices):
                result = self.function(*call.args, **call.kwargs)
            self.calls += 1  # one that raises is never recorded
            return result
        if not self._compare(call) or self.graph is None or not self.draws.has_seeds():
            self._record(call)
        return self._replay(call)

    def _compare(self, call: _Call) -> bool:
        """Whether the arrays equal in all calls so far still are."""
        moved = {i for i in self.fixed if not _is_same(call.arrays[i], self.arrays[i])}
        self.fixed -= moved
        return not moved

    def _record(self, call: _Call) -> None:
        self.graph, graph = None, Graph(pool=self.pool)
        # An array that is the same in each call is used where it is: others may share its memory.
        self.buffers = {
            i: _Buffer(array) for i, array in enumerate(call.arrays) if i not in self.fixed
        }
        self.inputs = [
            array if i in self.fixed else self.buffers[i].array
            for i, array in enumerate(call.arrays)
        ]
        self.packed = b""
        floats, ints = _split(call.numbers)
        self.floats, self.ints = kw.zeros(len(floats), "float64"), kw.zeros(len(ints), "int64")
        given = _Given(self.inputs, self.floats, self.ints)
        args, kwargs = given.rebuilt((call.args, call.kwargs))
        self._set_numbers(call.numbers)
        self.draws = draws.GraphDraws()
        kw.synchronize()
        try:
            with (
                graph.capture(), _captured_only(), draws.in_graph(self.draws),
                planned_by(self.choices), written_extents() as written,
            ):  # fmt: skip
                self.result = self.function(*args, **kwargs)
        except CaptureError as error:
            name = getattr(self.function, "__name__", "f")
            line = user_line(error.__traceback__)
            raise CaptureError(
                f"kw.captured: {name}() cannot be recorded, because it reads from the device, "
                f"works on a stream outside of the capture or copies from the host at {line} (its "
                "numbers are arrays from the third call on: bind those that Python needs by "
                f"functools.partial()): {error}"
            ).with_traceback(error.__traceback__) from None
        outputs = [extent_of(each) for each in nests.arrays(self.result)]
        self.outputs = outputs
        self.written = [
            i for i, each in enumerate(self.inputs)
            if i not in self.fixed and _touches(extent_of(each), written)
        ]  # fmt: skip
        self.arrays = [each if i in self.fixed else None for i, each in enumerate(self.arrays)]
        self.graph = graph

    def _set_numbers(self, numbers: list[float | int]) -> None:
        floats, ints = _split(numbers)
        packed = np.asarray(floats, "f8").tobytes() + np.asarray(ints, "i8").tobytes()
        if packed == self.packed:
            return
        self.packed = packed
        for array, values in ((self.floats, floats), (self.ints, ints)):
            if values:
                array[...] = np.asarray(values, array.dtype)

    def _replay(self, call: _Call) -> Any:
        assert self.graph is not None
        for i, buffer in self.buffers.items():
            buffer.take(call.arrays[i])
        self._set_numbers(call.numbers)
        self.draws.go_on()
        self.graph.launch()
        for i in self.written:
            # A result that came back as an argument is the new result by now.
            if not _touches(extent_of(call.arrays[i]), self.outputs):
                call.arrays[i][...] = self.inputs[i]
        return self.result


class _Buffer:
    """An argument as the graph reads it, with the strides and the alignment of the call's array:
    kernels choose the order of their sums by them. Views with wide gaps, and those of elements that
    overlap, become contiguous."""

    def __init__(self, like: Array) -> None:
        made = None if like.is_contiguous and like.ptr % _PACK == 0 else _laid_out_like(like)
        self.array = like.copy() if made is None else made
        self.once: tuple[slice, ...] | None = None  # what is broadcast lies there once
        if made is not None and 0 in like.strides:
            self.once = tuple(
                slice(0, 1) if stride == 0 and extent > 1 else slice(None)
                for stride, extent in zip(like.strides, like.shape, strict=True)
            )

    def take(self, given: Array) -> None:
        """The elements of an array of this layout."""
        if self.once is None:
            self.array[...] = given
        else:
            self.array[self.once] = given[self.once]


def _laid_out_like(array: Array) -> Array | None:
    """An array of the same shape, strides and alignment; None where it would take more than four
    times the memory of the elements, or where these cannot be cut from lines of one length."""
    axes = [n for n in range(array.ndim) if array.shape[n] > 1 and array.strides[n] != 0]
    axes.sort(key=lambda n: -abs(array.strides[n]))
    extents = [array.shape[n] for n in axes]
    steps = [abs(array.strides[n]) // array.itemsize for n in axes]
    nested = all(
        n * step <= outer for outer, n, step in zip(steps, extents[1:], steps[1:], strict=False)
    )
    if array.size == 0 or not nested:
        return None
    whole = extents[0] * steps[0] if axes else 1
    if whole > 4 * math.prod(extents):
        return None
    before = extent_of(array)[0] % _PACK // array.itemsize  # the pool's memory begins at packs
    made = kw.empty(before + whole, dtype=array.dtype, device=array.device)[before:]
    for depth, (extent, step) in enumerate(zip(extents, steps, strict=True)):
        made = made[(..., slice(extent * step))].reshape(*extents[:depth], extent, step)
    made = made[..., 0] if axes else made.reshape(())
    made = made[tuple(slice(None, None, -1 if array.strides[n] < 0 else 1) for n in axes)]
    made = kw.permute_dims(made, tuple(axes.index(n) for n in sorted(axes)))
    ones = tuple(n if at in axes else 1 for at, n in enumerate(array.shape))
    return made.reshape(ones)._broadcast(array.shape)


@contextmanager
def _captured_only() -> Iterator[None]:
    """Refuses work on other streams in the block: the graph would lack it."""
    before = _core._exchange_captured_only(True)
    try:
        yield
    finally:
        _core._exchange_captured_only(before)


def _is_same(a: Array, b: Array | None) -> bool:
    return b is not None and (a.ptr == b.ptr and a.strides == b.strides)


def _touches(extent: tuple[int, int], others: list[tuple[int, int]]) -> bool:
    return any(first < extent[1] and extent[0] < end for first, end in others)


def _split(numbers: list[float | int]) -> tuple[list[float], list[int]]:
    floats = [n for n in numbers if isinstance(n, float)]
    return floats, [n for n in numbers if not isinstance(n, float)]


class _Given:
    """The arguments as the graph's function gets them."""

    def __init__(self, inputs: list[Array], floats: Array, ints: Array) -> None:
        self.inputs = iter(inputs)
        self.words: dict[type, Iterator[int]] = {
            float: iter(range(floats.size)), int: iter(range(ints.size)),
        }  # fmt: skip
        self.arrays: dict[type, Array] = {float: floats, int: ints}

    def rebuilt(self, value: Any) -> Any:
        if isinstance(value, Array):
            return next(self.inputs)
        if is_number(value):
            kind = type(value)
            return _core._as_number(self.arrays[kind][next(self.words[kind])])
        members = nests.children(value)
        if members is None:
            return value
        return nests.rebuilt(value, [self.rebuilt(each) for _, each in members])
