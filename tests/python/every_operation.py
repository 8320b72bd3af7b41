"""Every public function, method and operator with a computation, each with small arguments.

A Case calls one of them with arrays made from Specs. The tables are in operations_arrays.py,
operations_layers.py, operations_library.py, operations_nn.py, operations_numpy.py,
operations_optim.py and operations_spatial.py;
test_every_operation.py has the rules for all.
"""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import kernwright as kw

# The actions of a case besides computing on the device.
KERNELS = "kernels"  # queues work on the stream, copies nothing to or from the host
VIEW = "view"  # queues nothing
HOST = "host"  # copies to or from the host, and cannot be captured
CHECKED = "checked"  # waits for the answer of a check, which a capture leaves out


class Spec(NamedTuple):
    """An argument: its shape, dtype, range of values, and how it lies in memory."""

    shape: tuple[int, ...]
    dtype: str = "float32"
    low: float = -2.0
    high: float = 2.0
    layout: str = "plain"

    def values(self, seed: int) -> Any:
        """Values on the host."""
        rng = np.random.default_rng(seed)
        dtype = kw.zeros(1, self.dtype).dtype
        if dtype.kind == "b":
            return rng.random(self.shape) < 0.5
        if dtype.kind in "iu":
            return rng.integers(int(self.low), int(self.high), self.shape).astype(dtype)
        made = rng.uniform(self.low, self.high, self.shape)
        if dtype.kind == "c":
            made = made + 1j * rng.uniform(self.low, self.high, self.shape)
        return np.asarray(made).astype(dtype)

    def place(self, values: Any) -> Any:
        """The values on the device in this layout."""
        if self.layout == "turned":  # the axes are the other way round in memory
            return kw.asarray(np.ascontiguousarray(values.T)).T
        if self.layout == "reversed":  # negative strides
            return kw.asarray(np.ascontiguousarray(values[::-1]))[::-1]
        if self.layout == "gaps":
            wide = np.zeros((*values.shape[:-1], 2 * values.shape[-1]), values.dtype)
            wide[..., ::2] = values
            return kw.asarray(wide)[..., ::2]
        if self.layout == "shifted":  # not where packs begin
            longer = np.concatenate([np.zeros(1, values.dtype), values.ravel()])
            return kw.asarray(longer)[1:].reshape(values.shape)
        return kw.asarray(values)


class Case(NamedTuple):
    """A call of a public name; `form` tells cases of one name apart."""

    group: str
    name: str
    form: str
    call: Callable[..., Any]
    specs: tuple[Spec, ...]
    kind: str = KERNELS

    @property
    def id(self) -> str:
        return "-".join(part for part in (self.group, self.name, self.form) if part)

    def arguments(self, seed: int = 1) -> list[Any]:
        """New arrays; equal ones for an equal seed."""
        return [spec.place(spec.values(seed + i)) for i, spec in enumerate(self.specs)]


def s(*shape: int, **options: Any) -> Spec:
    """A Spec, for short."""
    return Spec(shape, **options)


class Foreign:
    """Another library's array: nothing but DLPack."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


class Table(list[Case]):
    """Cases of one group."""

    def __init__(self, group: str) -> None:
        super().__init__()
        self.group = group

    def add(
        self, name: str, call: Callable[..., Any], *specs: Spec, form: str = "", kind: str = KERNELS
    ) -> None:
        """Adds a case, under a number where its name and form are there already."""
        taken = {(case.name, case.form) for case in self}
        number = 2
        chosen = form
        while (name, chosen) in taken:
            chosen = f"{form}{number}"
            number += 1
        self.append(Case(self.group, name, chosen, call, specs, kind))


def outputs(result: Any) -> list[Any]:
    """The arrays in the result of a call."""
    if isinstance(result, kw.Array):
        return [result]
    if isinstance(result, dict):
        result = list(result.values())
    if isinstance(result, (list, tuple)):
        return [array for each in result for array in outputs(each)]
    return []


def bits(arrays: list[Any]) -> list[tuple[Any, ...]]:
    """All properties of an array that may differ between two."""
    return [(a.shape, str(a.dtype), a.numpy().tobytes()) for a in arrays]


# Classes with computing members, or with members holding such.
CLASSES = {
    "Array": kw.Array,
    "random.Generator": kw.random.Generator,
    "optim.SGD": kw.optim.SGD,
    "optim.Adam": kw.optim.Adam,
    "optim.AdamW": kw.optim.AdamW,
    "optim.Lion": kw.optim.Lion,
    "optim.Muon": kw.optim.Muon,
    "optim.Accumulator": kw.optim.Accumulator,
    "optim.EMA": kw.optim.EMA,
    "optim.LossScale": kw.optim.LossScale,
}
# Modules of computing functions.
MODULES = ("fft", "linalg", "nn", "optim", "random")


def public_names() -> list[str]:
    """Every public callable of this package that might compute, by the name in the table."""
    names = []
    for name in kw.__all__:
        value = getattr(kw, name)
        if inspect.ismodule(value):
            if name in MODULES:
                names += [f"{name}.{inner}" for inner in value.__all__]
            if name == "nn":
                names += [f"nn.quant.{inner}" for inner in value.quant.__all__]
                names += [f"nn.init.{inner}" for inner in value.init.__all__]
        elif callable(value) and not (isinstance(value, type) and issubclass(value, BaseException)):
            names.append(name)
    for prefix, cls in CLASSES.items():
        names += [f"{prefix}.{member}" for member in dir(cls) if _computes(cls, member)]
    return names


def _computes(cls: type, member: str) -> bool:
    """Whether a member is a method, operator or view of its own."""
    if member in ("T", "mT", "real", "imag"):
        return True
    if member.startswith("_") and not (member.startswith("__") and cls is kw.Array):
        return False
    value = inspect.getattr_static(cls, member)
    return callable(value) and value is not inspect.getattr_static(object, member, None)
