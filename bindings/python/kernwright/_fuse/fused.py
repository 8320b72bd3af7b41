"""kw.fuse: Python functions and expression strings as one kernel, or a few."""

from __future__ import annotations

import inspect
import itertools
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from kernwright._core import _is_recording
from kernwright._fuse.arguments import signature_of, take
from kernwright._fuse.plan import FusionPlan, make_plan
from kernwright._fuse.trace import Fusible, Statements, recording
from kernwright.errors import ArgumentError, InvalidArgument

# Plans that a function keeps: one a combination of shapes, dtypes and strides.
_KEPT = 256
# The call of a fused function inside of a recording; _grad/fused.py sets the one entry.
_recorder: list[Callable[[Any, dict[str, Any]], Any]] = []


def record_calls(call: Callable[[Any, dict[str, Any]], Any]) -> None:
    """Has `call(fused, values)` run the calls of fused functions inside of recordings."""
    _recorder[:] = [call]


class Fused(Fusible):
    """A function whose calls run as fused kernels; made by kw.fuse()."""

    def __init__(
        self, function: Callable[..., Any], parameters: list[str] | None, name: str,
        forbid: str | None = None,
    ) -> None:  # fmt: skip
        self.function = function
        self.name = name
        self.__doc__ = function.__doc__ if parameters is None else None
        self.__name__ = name
        self._parameters = parameters
        self._signature = None if parameters is not None else inspect.signature(function)
        self._simple = _simple_parameters(self._signature)
        self._forbid = forbid
        self._plans: OrderedDict[Any, FusionPlan] = OrderedDict()
        self._recording: Callable[..., Any] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function's results, as arrays."""
        values = self._values(args, kwargs)
        if _is_recording():
            return _recorder[0](self, values)
        return self._plan(values).run(values)

    def source(self, *args: Any, **kwargs: Any) -> str:
        """The CUDA text that a call with these arguments runs."""
        launches = self._plan(self._values(args, kwargs)).launches
        return "\n".join(dict.fromkeys(launch.text for launch in launches))

    @property
    def kernels(self) -> list[Any]:
        """The kernels that calls so far have made."""
        found = itertools.chain.from_iterable(plan.kernels for plan in self._plans.values())
        return list({id(kernel): kernel for kernel in found}.values())

    def _plan(self, values: dict[str, Any]) -> FusionPlan:
        key = signature_of(values)
        plan = self._plans.get(key)
        if plan is None:
            if self._recording is None:
                self._recording = recording(self.function)
            plan = make_plan(self._recording, values, self.name, self._forbid)
            self._plans[key] = plan
            if len(self._plans) > _KEPT:
                self._plans.popitem(last=False)
        return plan

    def _values(self, args: Any, kwargs: Any) -> dict[str, Any]:
        """The arguments by name, arrays of other libraries adopted."""
        if self._simple is not None and not kwargs and len(args) == len(self._simple):
            given = dict(zip(self._simple, args, strict=True))
        elif self._parameters is not None:
            given = self._by_name(args, kwargs)
        else:
            assert self._signature is not None
            try:
                bound = self._signature.bind(*args, **kwargs)
            except TypeError as error:
                raise ArgumentError(f"{self.name}{self._signature}: {error}") from None
            bound.apply_defaults()
            given = dict(bound.arguments)
        return take(self.name, given)

    def _by_name(self, args: Any, kwargs: Any) -> dict[str, Any]:
        assert self._parameters is not None
        wanted = ", ".join(self._parameters)
        if len(args) > len(self._parameters):
            raise ArgumentError(f"{self.name} takes {wanted}, got {len(args)} arguments")
        given = dict(zip(self._parameters, args, strict=False))
        for name, value in kwargs.items():
            if name not in self._parameters:
                raise ArgumentError(f"{self.name} has no {name}: it takes {wanted}")
            if name in given:
                raise ArgumentError(f"{self.name} got {name} twice")
            given[name] = value
        missing = [name for name in self._parameters if name not in given]
        if missing:
            raise ArgumentError(f"{self.name} takes {wanted}: {', '.join(missing)} is missing")
        return {name: given[name] for name in self._parameters}

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else _Method(self, instance)

    def __repr__(self) -> str:
        return f"<fused {self.name}>"


class _Method:
    """A fused method of an object; the object is none of the arrays."""

    def __init__(self, fused: Fused, instance: Any) -> None:
        raise InvalidArgument(
            f"{fused.name}: methods cannot be fused; fuse a function of the arrays that it needs"
        )


def _simple_parameters(signature: inspect.Signature | None) -> list[str] | None:
    """The names, where all are plain ones without defaults."""
    if signature is None:
        return None
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = signature.parameters.values()
    if all(p.kind in plain and p.default is p.empty for p in parameters):
        return [p.name for p in parameters]
    return None


def fuse(function: Any = None, *, name: str | None = None) -> Any:
    """Runs a Python function of arrays and numbers, or an expression string, as one CUDA kernel.

    As a decorator, or called with a function or a string::

        @kw.fuse
        def gelu(x):
            return 0.5 * x * (1 + kw.tanh(0.79788456 * (x + 0.044715 * x**3)))

        norm = kw.fuse("x / sqrt(sum(x * x, -1, keepdims=True))")
        norm(x=array)

    The function is traced once for each combination of shapes, dtypes and strides. In it arrays
    have operators, the elementwise functions by their standard names (as kw.exp, np.exp or
    methods), where, clip, astype, basic indexing, reshape as far as it moves nothing, reductions
    (sum, prod, mean, max, min, any, all, argmax, argmin, var, std) over any axes, and kw.nn's
    softmax, layer_norm and their like. Several results are a tuple. Dtypes are NumPy's; values of
    float16, bfloat16 and float8 stay in float32 between operations and are rounded when they
    are stored or by astype(). Results of reductions used again with their axes kept stay in the
    kernel; what one kernel cannot hold is split into several. Raises InvalidArgument for what
    cannot be fused, such as branches on values.

    >>> norm = kw.fuse("x / sqrt(sum(x * x, -1, keepdims=True))")
    >>> norm(x=kw.asarray([3.0, 4.0])).numpy()
    array([0.6, 0.8], dtype=float32)
    """
    if function is None:
        return lambda decorated: fuse(decorated, name=name)
    if isinstance(function, str):
        statements = Statements(function)
        return Fused(statements, statements.parameters, _identifier(name or "fused"))
    if isinstance(function, Fused):
        return function
    if not callable(function):
        raise ArgumentError(
            f"kw.fuse() takes a function or a string, got a {type(function).__name__}"
        )
    own = str(getattr(function, "__name__", "fused"))
    return Fused(function, None, _identifier(name or own))


def _identifier(name: str) -> str:
    """A name that is one of C++ too."""
    if not isinstance(name, str):
        raise ArgumentError(f"the name of a kernel is a str, got {type(name).__name__} {name!r}")
    made = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in name).strip("_")
    return made if made and not made[0].isdigit() else f"fused_{made}".rstrip("_")


__all__ = ["Fused", "fuse"]
