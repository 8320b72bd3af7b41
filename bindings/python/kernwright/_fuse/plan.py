"""What a call does: the traced function's kernels, their launches, the arrays between them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from kernwright._core import Array, Kernel, current_device, empty, strided
from kernwright._fuse import types
from kernwright._fuse.arguments import is_aligned, same_device
from kernwright._fuse.emit import Kernel as KernelText
from kernwright._fuse.emit import Launch
from kernwright._fuse.emit_rows import write_kernel
from kernwright._fuse.graph import Graph, Node
from kernwright._fuse.names import safe_names
from kernwright._fuse.schedule import Scheduler
from kernwright._fuse.trace import Statements
from kernwright._fuse.values import Value, node_of
from kernwright.errors import ArgumentRangeError, InvalidArgument

# Text -> kernel: every function shares them.
_kernels: dict[tuple[str, str, tuple[str, ...]], Kernel] = {}


def compiled(text: str, name: str, options: tuple[str, ...] = ()) -> Kernel:
    """The kernel of a generated text, made once."""
    key = (text, name, options)
    if key not in _kernels:
        from kernwright._jit.kernels import kernel

        _kernels[key] = kernel(text, name, extra=list(options)) if options else kernel(text, name)
    return _kernels[key]


class FusionPlan:
    """The launches for one combination of shapes, dtypes and strides."""

    def __init__(self, name: str, arrays: list[str], copied: set[str], scalars: list[str]) -> None:
        self._name = name
        self._arrays, self._copied, self._scalars = arrays, copied, scalars
        self._is_tuple = False
        self._device: Any = None
        self.preamble = ""
        self.results: list[tuple[tuple[int, ...], Any]] = []
        self.temps: dict[int, tuple[tuple[int, ...], Any]] = {}
        self.ranges: list[tuple[str, Any]] = []
        self.launches: list[Launch] = []
        self._bound: list[Any] = []

    @property
    def kernels(self) -> list[Kernel]:
        return [compiled(launch.text, launch.name) for launch in self.launches]

    def build(self, returned: Any, graph: Graph, values: dict[str, Any]) -> None:
        """From what the traced function returned."""
        self._is_tuple = isinstance(returned, (tuple, list))
        self.build_nodes(
            [node_of(graph, r) for r in (returned if self._is_tuple else [returned])], graph, values
        )

    def build_nodes(self, roots: list[Node], graph: Graph, values: dict[str, Any]) -> None:
        # A plan is looked up by the arrays' device, so that all its calls have the same one.
        self._device = same_device(self._name, [values[name] for name in self._arrays])
        if not roots:
            raise InvalidArgument(f"{self._name} returns nothing")
        self.results = [(root.shape, root.held) for root in roots]
        kernel_name = safe_names([self._name])[0]
        shown = safe_names([*self._arrays, *self._scalars])
        arrays, numbers = shown[: len(self._arrays)], shown[len(self._arrays) :]
        scalars = {
            i: (text, _scalar_type(values[name]))
            for i, (text, name) in enumerate(zip(numbers, self._scalars, strict=True))
        }
        addresses = [0 if name in self._copied else values[name].ptr & 15 for name in self._arrays]
        wanted = [r for r in roots if math.prod(r.shape)]
        kept = [i for i, r in enumerate(roots) if math.prod(r.shape)]
        for step in Scheduler(graph).run(wanted):
            stored = [s._replace(slot=("out", kept[s.slot[1]])) if s.slot[0] == "out" else s
                      for s in step.stored]  # fmt: skip
            for s in stored:
                if s.slot[0] == "temp":
                    dtype = types.compute_dtype(s.node.held)
                    self.temps[s.slot[1]] = (s.node.shape, dtype)
            text = KernelText(step._replace(stored=stored), kernel_name, arrays, scalars,
                              lambda a: addresses[a] if isinstance(a, int) else 0,
                              self.preamble)  # fmt: skip
            self._add(write_kernel(text))

    def _add(self, launches: list[Launch]) -> None:
        for launch in launches:
            for key, size in launch.scratch.items():
                self.temps[key] = ((size,), np.dtype("uint8"))
            self.launches.append(launch)

    def run(self, values: dict[str, Any], outs: list[Array] | None = None) -> Any:
        """The results, in `outs` where there are some: of these shapes and dtypes, without gaps."""
        arrays = []
        for name in self._arrays:
            array = values[name]
            arrays.append(array.copy() if name in self._copied else array)
        for name, dtype in self.ranges:
            _check_range(self._name, name, values[name], dtype)
        device = self._device
        if device != current_device():
            with device:
                return self._launch(device, arrays, values, outs)
        return self._launch(device, arrays, values, outs)

    def _launch(self, device: Any, arrays: list[Array], values: dict[str, Any],
                outs: list[Array] | None) -> Any:  # fmt: skip
        if len(self._bound) != len(self.launches):
            pairs = zip(self.kernels, self.launches, strict=True)
            self._bound = [k[launch.grid, launch.block] for k, launch in pairs]
        if outs is None:
            outs = [empty(shape, dtype, device=device) for shape, dtype in self.results]
        places: dict[str, Any] = {
            "out": outs,
            "temp": {k: empty(shape, dtype, device=device)
                     for k, (shape, dtype) in self.temps.items()},
        }  # fmt: skip
        passed = [a if a.is_contiguous else strided(a) for a in arrays]
        for launch, bound in zip(self.launches, self._bound, strict=True):
            args = [passed[s] if isinstance(s, int) else places[s[0]][s[1]] for s in launch.inputs]
            args += [places[kind][index] for kind, index in launch.outputs]
            args += [_number(values[self._scalars[i]]) for i in launch.scalars]
            bound(*args, *launch.values)
        return tuple(outs) if self._is_tuple else outs[0]


def make_plan(function: Callable[..., Any], values: dict[str, Any], name: str,
              forbid: str | None) -> FusionPlan:  # fmt: skip
    """Traces `function` with what stands for `values`."""
    graph = Graph()
    arrays = [key for key, value in values.items() if isinstance(value, Array)]
    same_device(name, [values[key] for key in arrays])
    scalars = [key for key, value in values.items()
               if isinstance(value, np.generic) or types.weak_kind(value) is not None]  # fmt: skip
    copied = {key for key in arrays if not is_aligned(values[key])}
    given: dict[str, Any] = {}
    for key, value in values.items():
        if key in arrays:
            given[key] = Value(graph, _leaf(graph, arrays.index(key), value, key in copied))
        elif key in scalars:
            weak = types.weak_kind(value)
            dtype = None if weak else types.as_dtype(value.dtype)
            given[key] = Value(graph, graph.scalar(scalars.index(key), dtype, weak))
        else:
            given[key] = value
    plan = FusionPlan(name, arrays, copied, scalars)
    returned = call_with(function, given)
    _check_returned(name, returned)
    if forbid and any(node.op == "reduce" for node in graph.nodes()):
        raise InvalidArgument(f"{name}: {forbid}")
    plan.ranges = [(scalars[index], dtype) for index, dtype in graph.narrowed_scalars()]
    plan.build(returned, graph, values)
    return plan


def call_with(function: Callable[..., Any], given: dict[str, Any]) -> Any:
    """The function with these arguments by name, whatever kinds of parameters it has."""
    kinds = getattr(function, "__code__", None)
    if kinds is None or isinstance(function, Statements):
        return function(**given)
    positional = kinds.co_varnames[: kinds.co_posonlyargcount]
    star = kinds.co_varnames[kinds.co_argcount + kinds.co_kwonlyargcount :]
    named = {k: v for k, v in given.items() if k not in positional and k not in star[:2]}
    return function(*(given[name] for name in positional), **named)


def _check_returned(name: str, returned: Any) -> None:
    for value in returned if isinstance(returned, (tuple, list)) else (returned,):
        if not isinstance(value, Value):
            raise InvalidArgument(
                f"{name} returns a {type(value).__name__}: a fused function returns values made of "
                "its arguments, or a tuple of them"
            )


def _leaf(graph: Graph, index: int, array: Array, is_copied: bool) -> Node:
    size = array.dtype.itemsize
    strides = [s // size for s in array.strides]
    if is_copied:
        strides, step = [], 1
        for extent in reversed(array.shape):
            strides.insert(0, step)
            step *= extent
    types.element_type(array.dtype)
    return graph.leaf(index, 0, array.shape, strides, array.dtype)


def _scalar_type(value: Any) -> str:
    weak = types.weak_kind(value)
    return types.compute_type(types.WEAK[weak] if weak else value.dtype)


def _number(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _check_range(function: str, name: str, value: int, dtype: Any) -> None:
    limits = np.iinfo(dtype)
    if not limits.min <= value <= limits.max:
        raise ArgumentRangeError(
            f"{function}: {name} = {value} does not fit {dtype} ({limits.min} ... {limits.max})"
        )
