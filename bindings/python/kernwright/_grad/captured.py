"""kw.captured: a function as graphs, one for each kind of call."""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

import kernwright as kw
from kernwright import _core
from kernwright._core import Array, Graph
from kernwright._grad import draws, nests  # transforms installs the handlers
from kernwright.errors import ArgumentError

__all__ = ["captured"]

_EAGER = 2  # calls that run before the graph is made
_KEPT = 32  # graphs of a function


def captured(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function that does what `f` does, from its third call on as one graph.

    The first two calls with given shapes, dtypes and structure of the arguments run `f` as it is:
    kernels are compiled, memory is set up. The third records what `f` queues, and from then on a
    call launches that graph; Python runs no longer. Calls of another kind have a graph of their
    own; the 32 used last are kept. Results are equal in all bits to those of `f`.

    Arguments are arrays, numbers, modules, and dicts, lists and tuples of them; others are part of
    the kind of call, by their value. Arrays may be others in each call: their elements are copied
    into those that the graph reads, and back where `f` writes into them. Ints and floats may
    change, too: the graph reads them from the device; bind what `f` needs on the host (an axis, a
    shape) by functools.partial(). Parameters of modules, and what `f` closes over, are used where
    they are. Random numbers go on from call to call, as without a graph.

    The arrays in the result are the graph's: the next call of this kind overwrites them, so copy
    what you keep. Inside of a recording of gradients or another graph `f` runs as it is.

    Raises CaptureError where `f` reads from the device or copies from the host (.numpy(), a branch
    on a value), with the call's name; its line is in the traceback. Not for several threads.

    >>> step = kw.captured(lambda x, a: kw.exp(x) * a)
    >>> [float(step(kw.zeros(3), a)[0]) for a in (1.0, 2.0, 3.0, 4.0)]
    [1.0, 2.0, 3.0, 4.0]
    """
    if not callable(f):
        raise ArgumentError(f"kw.captured() takes a function, got {type(f).__name__}")
    return functools.wraps(f, updated=())(_Captured(f))


class _Captured:
    """A function and its graphs, by kinds of calls."""

    def __init__(self, f: Callable[..., Any]) -> None:
        self.function = f
        self._plans: OrderedDict[Any, _Plan] = OrderedDict()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if _core._is_recording() or _core._any_capture():
            return self.function(*args, **kwargs)
        call = _Call()
        call.read((args, kwargs), "")
        key = (_core.current_device().ordinal, _core.current_device().is_simulated, *call.key)
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = _Plan()
            if len(self._plans) > _KEPT:
                self._plans.popitem(last=False)
        else:
            self._plans.move_to_end(key)
        return plan.run(self.function, args, kwargs, call)

    def __repr__(self) -> str:
        return f"<captured {getattr(self.function, '__name__', self.function)!s}>"

    @property
    def graphs(self) -> list[Graph]:
        """The graphs that were made, the one used last at the end."""
        return [plan.graph for plan in self._plans.values() if plan.graph is not None]


class _Call:
    """The arguments of a call: what tells its kind, its arrays, its numbers."""

    def __init__(self) -> None:
        self.key: list[Any] = []
        self.arrays: list[Array] = []
        self.numbers: list[float | int] = []
        self.held: list[Any] = []  # known by identity, so that nothing else gets it

    def read(self, value: Any, path: str) -> None:
        """Adds an argument and all that is in it."""
        if isinstance(value, Array):
            self.key.append((path, value.shape, value.dtype, value.device.ordinal))
            self.arrays.append(value)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            self.key.append((path, type(value)))
            self.numbers.append(value)
        elif (members := nests.children(value)) is not None:
            self.key.append((path, type(value), len(members)))
            for name, each in members:
                self.read(each, f"{path}.{name!r}")
        elif nests.is_module(value):
            parameters = tuple(id(array) for _, array in value.named_parameters())
            modes = tuple(each.training for _, each in value.named_modules())
            self._hold(path, value, parameters, modes)
        elif isinstance(value, (str, bytes, bool, type(None), np.dtype, type)):
            self.key.append((path, value))
        else:
            self._hold(path, value)

    def _hold(self, path: str, value: Any, *more: Any) -> None:
        self.key.append((path, id(value), *more))
        self.held.append(value)


class _Plan:
    """The calls of one kind: eager ones first, then a graph with its arrays."""

    def __init__(self) -> None:
        self.calls = 0
        self.written: set[int] = set()  # the numbers of arrays that the function writes into
        self.graph: Graph | None = None

    def run(self, f: Callable[..., Any], args: Any, kwargs: Any, call: _Call) -> Any:
        if self.calls < _EAGER:
            self.held = call.held
            result = self._run_eagerly(f, args, kwargs, call)
            self.calls += 1
            return result
        if self.graph is None:
            self._record(f, args, kwargs, call)
        return self._replay(call)

    def _run_eagerly(self, f: Callable[..., Any], args: Any, kwargs: Any, call: _Call) -> Any:
        before = [array.copy() for array in call.arrays]
        result = f(*args, **kwargs)
        for number, (old, array) in enumerate(zip(before, call.arrays, strict=True)):
            if array.size and not _same_bits(old, array.copy()):
                self.written.add(number)
        return result

    def _record(self, f: Callable[..., Any], args: Any, kwargs: Any, call: _Call) -> None:
        graph = Graph()
        self.inputs = [array.copy() for array in call.arrays]
        self.numbers: list[float | int] = []
        floats = [n for n in call.numbers if isinstance(n, float)]
        ints = [n for n in call.numbers if not isinstance(n, float)]
        self.floats = kw.zeros(len(floats), "float64")
        self.ints = kw.zeros(len(ints), "int64")
        given = _Given(self.inputs, self.floats, self.ints)
        args, kwargs = given.rebuilt((args, kwargs))
        self._set_numbers(call.numbers)
        self.draws = draws.GraphDraws()
        kw.synchronize()
        with graph.capture(), draws.in_graph(self.draws):
            self.result = f(*args, **kwargs)
        self.graph = graph

    def _set_numbers(self, numbers: list[float | int]) -> None:
        if numbers == self.numbers and all(
            type(a) is type(b) for a, b in zip(numbers, self.numbers, strict=True)
        ):
            return
        self.numbers = list(numbers)
        floats = [n for n in numbers if isinstance(n, float)]
        ints = [n for n in numbers if not isinstance(n, float)]
        for array, values in ((self.floats, floats), (self.ints, ints)):
            if values:
                array[...] = np.asarray(values, array.dtype)

    def _replay(self, call: _Call) -> Any:
        assert self.graph is not None
        for array, buffer in zip(call.arrays, self.inputs, strict=True):
            if array.ptr != buffer.ptr:
                buffer[...] = array
        self._set_numbers(call.numbers)
        self.draws.go_on()
        self.graph.launch()
        for number in self.written:
            array = call.arrays[number]
            if array.ptr != self.inputs[number].ptr:
                array[...] = self.inputs[number]
        return self.result


class _Given:
    """The arguments as the graph's function gets them."""

    def __init__(self, inputs: list[Array], floats: Array, ints: Array) -> None:
        self.inputs = iter(inputs)
        self.words = {float: iter(range(floats.size)), int: iter(range(ints.size))}
        self.arrays = {float: floats, int: ints}

    def rebuilt(self, value: Any) -> Any:
        if isinstance(value, Array):
            return next(self.inputs)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            kind = float if isinstance(value, float) else int
            return _core._as_number(self.arrays[kind][next(self.words[kind])])
        members = nests.children(value)
        if members is None:
            return value
        return nests.rebuilt(value, [self.rebuilt(each) for _, each in members])


def _same_bits(a: Array, b: Array) -> bool:
    raw = [each.reshape(-1).view("uint8") for each in (a, b)]
    return bool(kw.all(raw[0] == raw[1]))
