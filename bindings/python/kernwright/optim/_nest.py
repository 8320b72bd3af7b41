"""Parameters and gradients as nests: modules, dicts, lists and tuples of arrays, by name."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from kernwright._array.operands import device_array
from kernwright._core import Array
from kernwright._support.cycles import require_no_cycle
from kernwright._support.modules import is_module
from kernwright.errors import ArgumentError, InvalidArgument

_SHOWN = 20  # names of each list in a message
_FLOATS = frozenset(map(np.dtype, ("f2", ml_dtypes.bfloat16, "f4", "f8")))
_FLOAT_NAMES = "float16, bfloat16, float32 or float64"


def leaves(nest: Any, what: str, trainable: bool = False) -> dict[str, Any]:
    """The arrays of a nest by name: keys and positions joined by dots. One array alone is "0". With
    `trainable` modules give no frozen ones, and none of whole numbers, which have no gradients.
    Raises InvalidArgument for a nest inside itself."""
    if is_module(nest):
        nest = _of_module(nest, trainable)
    if isinstance(nest, Array) or hasattr(nest, "shape"):
        return {"0": nest}
    made: dict[str, Any] = {}
    try:
        _collect(_outer(nest, what), "", what, made, trainable)
    except RecursionError:
        require_no_cycle(nest, what)
        raise
    return made


def require_kinds(grads: Mapping[str, Any], device: Any = None) -> None:
    """Raises InvalidArgument with the names of gradients of wrong dtypes, and of those that are not
    on the device, that of the first one unless given. It is called where an operation, which knows
    no names, has refused some of them: a right call pays nothing."""
    wrong = []
    for name, given in grads.items():
        each = device_array(given, f"grads[{name}]")
        device = device or each.device
        if each.dtype not in _FLOATS:
            wrong.append(f"grads[{name}] is {_FLOAT_NAMES}, not {each.dtype}")
        elif each.device != device:
            wrong.append(f"grads[{name}] is on {each.device}, and all must be on {device}")
    if wrong:
        raise InvalidArgument("; ".join(wrong)) from None


def _of_module(module: Any, trainable: bool) -> dict[str, Any]:
    if not trainable:
        return dict(module.parameters())
    found = leaves(module.trainable_parameters(), "params")
    return {name: each for name, each in found.items() if each.dtype.kind not in "iub"}


def _outer(nest: Any, what: str) -> Any:
    if isinstance(nest, (Mapping, list, tuple)):
        return nest
    if nest is None:
        return []
    try:
        return list(nest)
    except TypeError:
        raise ArgumentError(
            f"{what} is a module, an array, or a dict, list or tuple of arrays, "
            f"got {type(nest).__name__}"
        ) from None


def _collect(nest: Any, prefix: str, what: str, made: dict[str, Any], trainable: bool) -> None:
    """Enters the arrays below `nest` under their names; every step of a training run does this."""
    for key, value in nest.items() if isinstance(nest, Mapping) else enumerate(nest):
        if not isinstance(key, (str, int)) or key == "":
            raise ArgumentError(f"{what} has the key {key!r:.60}: keys are names")
        name = f"{prefix}{key}"
        if not isinstance(value, Array):
            if isinstance(value, (Mapping, list, tuple)):
                _collect(value, f"{name}.", what, made, trainable)
                continue
            if is_module(value):
                _collect(_of_module(value, trainable), f"{name}.", what, made, trainable)
                continue
        if name in made:
            raise InvalidArgument(f"{what} has the name {name!r} twice")
        made[name] = value


def like(nest: Any, values: Mapping[str, Any]) -> Any:
    """The values by name in the nest of `nest`: lists for lists and tuples, nested dicts for
    modules, a list for one array. Where names are absent, all but modules give a flat dict."""
    if is_module(nest):
        return _nested(values)
    if hasattr(nest, "shape"):
        return list(values.values())
    if len(values) < len(leaves(nest, "a nest")):
        return dict(values)
    return _same(nest, "", values)


def _same(nest: Any, path: str, values: Mapping[str, Any]) -> Any:
    if is_module(nest):
        nest = nest.parameters()
    if isinstance(nest, Mapping):
        return {
            key: _same(each, f"{path}.{key}" if path else str(key), values)
            for key, each in nest.items()
        }
    if isinstance(nest, (list, tuple)):
        return [
            _same(each, f"{path}.{i}" if path else str(i), values) for i, each in enumerate(nest)
        ]
    return values[path]


def _nested(values: Mapping[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, value in values.items():
        *outer, last = name.split(".")
        place = made
        for key in outer:
            place = place.setdefault(key, {})
        place[last] = value
    return made


class Parameters:
    """The arrays of an optimiser by name, and those it may change now."""

    def __init__(self, source: Any) -> None:
        """`source`: a module, or a nest of modules and arrays, each array once."""
        self.source: Any = source if _is_kept(source) else list(_outer(source, "params"))
        self.arrays: dict[str, Array] = leaves(self.source, "params", trainable=True)
        _require_parameters(self.arrays)
        self._now = self.arrays
        self._ignored: set[str] = set()
        self._links: list[tuple[Any, Any, Any]] = []
        self._frozen: list[tuple[Any, Any]] = []
        self._look()

    def __getstate__(self) -> tuple[Any, ...]:
        return self.source, self.arrays, self._now

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.source, self.arrays, self._now = state
        self._links, self._frozen, self._ignored = [], [], set()
        self._look()

    def _look(self) -> None:
        """Notes by what it is seen later that there are other arrays or frozen ones."""
        self._links = list(_links(self.source))
        modules = [each for _, _, each in self._links if is_module(each)]
        modules += [self.source] if is_module(self.source) else []
        self._frozen = [(each, each._frozen) for each in modules]
        self._ignored = {name for name in leaves(self.source, "params") if name not in self._now}

    def _is_unchanged(self) -> bool:
        try:
            for holder, key, value in self._links:
                if holder[key] is not value:
                    return False
        except (LookupError, TypeError):
            return False
        return all(module._frozen is frozen for module, frozen in self._frozen)

    def __iter__(self) -> Iterator[str]:
        return iter(self.arrays)

    def now(self) -> dict[str, Array]:
        """The arrays without those that were frozen since. Raises InvalidArgument where a module or
        a dict has other arrays than before: what is stepped must be what is used."""
        if self._is_unchanged():
            return self._now
        found = leaves(self.source, "params", trainable=True)
        for name, array in found.items():
            if name not in self.arrays:
                raise InvalidArgument(
                    f"{name} was frozen or absent when the optimiser was made and has no state: "
                    "make another optimiser, and load the old one's state_dict()"
                )
            if array is not self.arrays[name]:
                raise InvalidArgument(
                    f"{name} is another array than when the optimiser was made: make the "
                    "optimiser after astype(), to() and assignments"
                )
        self._now = found
        self._look()
        return found

    def gradients(self, grads: Any) -> dict[str, Array]:
        """The gradients of the arrays of now(), in their order. Raises InvalidArgument with all
        names that are missing or unexpected, and all shapes that differ; those of frozen
        parameters are left out."""
        now, given = self.now(), leaves(grads, "grads")
        missing = [name for name in now if given.get(name) is None]
        unexpected = [name for name in given if name not in now and name not in self._ignored]
        if missing or unexpected:
            raise InvalidArgument(
                "the gradients do not fit the parameters: "
                + told({"missing": missing, "unexpected": unexpected})
            )
        found = {name: device_array(given[name], f"grads[{name}]") for name in now}
        wrong = [
            f"grads[{name}] has shape {each.shape} in place of {now[name].shape}"
            for name, each in found.items()
            if each.shape != now[name].shape
        ]
        if wrong:
            raise InvalidArgument("the gradients do not fit the parameters: " + "; ".join(wrong))
        return found

    def nest(self, values: Mapping[str, Any]) -> Any:
        """Values by name in the nest of the parameters."""
        return like(self.source, values)


def _require_parameters(arrays: Mapping[str, Any]) -> None:
    """Raises for arrays an optimiser cannot write in place, or would write twice."""
    for name, each in arrays.items():
        if not isinstance(each, Array):
            raise ArgumentError(f"params[{name}] is a kw.Array, got {type(each).__name__}")
        if each.dtype not in _FLOATS:
            raise InvalidArgument(f"params[{name}] is {_FLOAT_NAMES}, not {each.dtype}")
        if not each.is_contiguous or each.read_only:
            raise InvalidArgument(
                f"params[{name}] is written in place: it must be contiguous and not read-only"
            )
    if not arrays:
        raise InvalidArgument("an optimiser has one parameter at least")
    (first, array), *others = arrays.items()
    for name, each in others:
        if each.device != array.device:
            raise InvalidArgument(
                f"params[{name}] is on {each.device}, and params[{first}] on {array.device}: the "
                "parameters of an optimiser are on one device"
            )
    extents = sorted((x.ptr, x.ptr + x.nbytes, name) for name, x in arrays.items() if x.size)
    for (_, end, one), (begin, _, other) in itertools.pairwise(extents):
        if begin < end:
            one, other = sorted((one, other), key=list(arrays).index)
            same = arrays[one] is arrays[other]
            raise InvalidArgument(
                f"params[{one}] and params[{other}] "
                + ("are one array" if same else "share memory, which would be stepped twice")
                + ": pass it once, with the sum of its gradients"
            )


def _is_kept(source: Any) -> bool:
    """Whether later changes of the object count; lists of arguments are copied."""
    return is_module(source) or hasattr(source, "shape") or isinstance(source, Mapping)


def _links(value: Any) -> Iterator[tuple[Any, Any, Any]]:
    """What holds each array, module, dict and list below `value`, the key there, and the part."""
    holder = vars(value) if is_module(value) else value
    if not isinstance(holder, (Mapping, list, tuple)):
        return
    for key, each in holder.items() if isinstance(holder, Mapping) else enumerate(holder):
        if is_module(value) and str(key).startswith("_"):
            continue
        if isinstance(each, Array):
            yield holder, key, each
        elif isinstance(each, (Mapping, list, tuple)) or is_module(each):
            yield holder, key, each
            yield from _links(each)


def told(lists: Mapping[str, Sequence[str]]) -> str:
    """The lists with entries, each with its title."""
    return "; ".join(f"{title}: {_listed(names)}" for title, names in lists.items() if names)


def _listed(names: Sequence[str]) -> str:
    more = f", ... ({len(names)} in all)" if len(names) > _SHOWN else ""
    return ", ".join(map(str, names[:_SHOWN])) + more


def load_named(
    own: Mapping[str, Array], given: Mapping[str, Any], what: str, cast: bool = False
) -> None:
    """Copies arrays by name; dtypes must be equal without `cast`. Raises InvalidArgument with all
    that does not fit, before anything has changed."""
    values = {name: device_array(given[name], name) for name in own if name in given}
    shapes = [
        f"{name} has shape {each.shape} in place of {own[name].shape}"
        for name, each in values.items()
        if each.shape != own[name].shape
    ]
    dtypes = [
        f"{name} is {each.dtype.name} in place of {own[name].dtype.name}"
        for name, each in values.items()
        if each.dtype != own[name].dtype and not cast
    ]
    problems = {
        "missing": [name for name in own if name not in given],
        "unexpected": [name for name in given if name not in own],
        "wrong shapes": shapes,
        "wrong dtypes": dtypes,
    }
    if any(problems.values()):
        raise InvalidArgument(f"the arrays do not fit {what}, which is unchanged: {told(problems)}")
    ready = {
        name: each.to(own[name].device).astype(own[name].dtype, copy=False)
        for name, each in values.items()
    }
    for name, each in ready.items():
        own[name][...] = each
