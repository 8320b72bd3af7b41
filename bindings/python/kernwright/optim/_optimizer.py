"""What all optimisers share: parameters by name, groups, counted steps, states."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import kernwright
from kernwright import _core
from kernwright._array.operands import device_array
from kernwright._core import Array
from kernwright.errors import ArgumentError, InvalidArgument, NameNotFound
from kernwright.optim._accumulate import Accumulator
from kernwright.optim._functions import not_negative, tensors
from kernwright.optim._groups import Group, check_options, require_options, split_groups
from kernwright.optim._loss_scale import LossScale
from kernwright.optim._nest import Parameters, leaves, load_named, require_kinds
from kernwright.optim._schedules import Schedule
from kernwright.random._sequence import whole

_MOST_GROUPS = 100  # that a launch moves on
_GOLDEN = 0x9E3779B97F4A7C15  # 2**64 divided by the golden ratio: seeds of groups lie far apart

Part = tuple[str, list[Any], list[Any], list[Any], list[Any], list[Any], list[Any], dict[str, Any]]


class Setting:
    """A hyperparameter as an attribute: what is set goes to all groups without one of their own."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, optimizer: Any, owner: Any = None) -> Any:
        return self if optimizer is None else optimizer._defaults[optimizer._main][self._name]

    def __set__(self, optimizer: Any, value: Any) -> None:
        before = optimizer._defaults[optimizer._main]
        check_options({**before, self._name: value}, before)
        groups = [
            group
            for group in optimizer.groups
            if group.rule == optimizer._main and self._name not in group.own
        ]
        for group in groups:
            check_options({**group.options, self._name: value}, group.options)
        for group in groups:
            group._change({self._name: value})
        before[self._name] = value


class Optimizer:
    """Parameters, their states, and the count of steps on the device."""

    _main: str  # the rule of parameters for which nothing else is said

    lr = Setting()
    weight_decay = Setting()

    def __init__(
        self, params: Any, defaults: dict[str, dict[str, Any]], *, groups: Any = None,
        master_weights: bool = False, maximize: bool = False, stochastic_rounding: bool = False,
        seed: int = 0, nesterov: bool = False, amsgrad: bool = False,
    ) -> None:  # fmt: skip
        for options in defaults.values():
            check_options(options, {})
        self._defaults = defaults
        self._parameters = Parameters(params)
        arrays = self._parameters.arrays
        if master_weights and stochastic_rounding:
            raise InvalidArgument("master weights need no stochastic rounding: choose one")
        for name, each in arrays.items():
            if master_weights and each.dtype.name == "float64":
                raise InvalidArgument(f"master weights are float32, and params[{name}] is float64")
            if stochastic_rounding and each.dtype.name != "bfloat16":
                raise InvalidArgument(
                    f"stochastic rounding is of bfloat16, and params[{name}] is {each.dtype}"
                )
        device = next(iter(arrays.values())).device
        self._flags = {
            "maximize": bool(maximize), "stochastic_rounding": bool(stochastic_rounding),
            "nesterov": bool(nesterov), "amsgrad": bool(amsgrad),
        }  # fmt: skip
        self._seed = whole(seed, "seed")
        self.groups: list[Group] = self._made_groups(arrays, groups, device)
        self._states = {
            name: {
                each: kernwright.zeros_like(arrays[each], _state_dtype(arrays[each]))
                for group in self.groups
                if name in self._state_names(group)
                for each in group.names
            }
            for name in self._all_state_names()
        }
        self._masters = (
            {name: each.astype(_state_dtype(each)) for name, each in arrays.items()}
            if master_weights
            else {}
        )
        self.steps = kernwright.zeros(1, "int64", device=device)

    def _made_groups(self, arrays: Mapping[str, Array], given: Any, device: Any) -> list[Group]:
        known = {"rule", *(name for options in self._defaults.values() for name in options)}
        if len(self._defaults) == 1:
            known.remove("rule")
        made: list[Group] = []
        for options, names in split_groups(arrays, given, known):
            by_rule: dict[str, list[str]] = {}
            for name in names:
                by_rule.setdefault(self._rule_of(arrays[name], options), []).append(name)
            for rule, members in by_rule.items():
                own = {name: value for name, value in options.items() if name != "rule"}
                defaults = self._defaults[rule]
                require_options(own, defaults, f"the group of {members[0]}, stepped by {rule}, ")
                group = Group(rule, members, {**defaults, **own}, device, len(made))
                group.own = set(own)
                made.append(group)
        return made

    def _rule_of(self, array: Array, options: Mapping[str, Any]) -> str:
        return self._main

    def _state_names(self, group: Group) -> tuple[str, ...]:
        """What a group keeps for each parameter."""
        return ()

    def _all_state_names(self) -> tuple[str, ...]:
        names = [name for group in self.groups for name in self._state_names(group)]
        return tuple(dict.fromkeys(names))

    @property
    def params(self) -> list[Array]:
        """The parameters, in their order."""
        return list(self._parameters.arrays.values())

    @property
    def rate(self) -> Array:
        """The learning rate of the last step, one number on the device: that of the first group
        without a rate of its own."""
        shared = [g for g in self.groups if g.rule == self._main and "lr" not in g.own]
        return (shared or self.groups)[0].rate

    @property
    def states(self) -> dict[str, Any]:
        """The states of the parameters: for each, arrays in the nest of the parameters."""
        return {name: self._parameters.nest(each) for name, each in self._states.items()}

    @property
    def masters(self) -> Any:
        """The float32 copies of the parameters in their nest; an empty list without them."""
        return self._parameters.nest(self._masters) if self._masters else []

    def step(
        self, grads: Any, *, grad_scale: Array | None = None, max_norm: float | None = None,
        loss_scale: LossScale | None = None,
    ) -> Array | None:  # fmt: skip
        """Moves the parameters by gradients in their nest, or by those of an Accumulator, whose
        window ends with it. When it raises, nothing has changed.

        - `max_norm` clips: gradients whose common norm is longer are scaled to it as they are read.
        - `loss_scale` divides the gradients by the factor that the loss had. If their norm is not
          finite, the step is skipped on the device: parameters, states and the count stay.
        - `grad_scale`: one more factor, an array of one float32.

        Returns the norm of the gradients before it was clipped, float32 on the device, with
        `max_norm` or `loss_scale`; else None. Nothing is copied to the host, so that a graph can
        record the step. Raises InvalidArgument for gradients that do not fit, naming all of them.
        """
        window = grads if isinstance(grads, Accumulator) else None
        given = window.sums if window is not None else grads
        found = self._parameters.gradients(given)
        limit = None if max_norm is None else not_negative(max_norm, "max_norm")
        if not found:
            return None
        try:
            return self._step(found, window, grad_scale, limit, loss_scale)
        except (ArgumentError, InvalidArgument):
            require_kinds(found, self.steps.device)
            raise

    def _step(
        self, found: dict[str, Array], window: Accumulator | None, grad_scale: Array | None,
        limit: float | None, loss_scale: LossScale | None,
    ) -> Array | None:  # fmt: skip
        norm, skip, factor = None, None, grad_scale
        if window is not None or loss_scale is not None or limit is not None:
            if loss_scale is not None or limit is not None:
                norm = _core._gradient_norm(list(found.values()), float("inf"), 2.0)[0]
            factor, length, skip = _core._gradient_factor(
                self.steps, norm, None if loss_scale is None else loss_scale.scale, grad_scale,
                None if window is None else window.tokens, math.inf if limit is None else limit,
            )  # fmt: skip
            norm = None if norm is None else length
        parts = self._parts(found, {"scale": factor, "skip": skip, "steps": self.steps, "step": 0})
        _core._optimizer_steps(parts, self._advance(skip, window, loss_scale))
        return norm

    def _advance(
        self, skip: Array | None, window: Accumulator | None, loss_scale: LossScale | None
    ) -> dict[str, Any]:
        # A graph follows a schedule that a group gets later.
        groups = sorted(self.groups, key=lambda group: group.schedule is None)
        count = max(_MOST_GROUPS, sum(group.schedule is not None for group in groups))
        words: dict[str, Any] = {
            "steps": self.steps, "skip": skip, "loss_scale": None, "good": None,
            "tokens": None if window is None else window.tokens,
            "groups": [group.plan for group in groups[:count]],
        }  # fmt: skip
        return words if loss_scale is None else words | loss_scale._words()

    def _parts(self, grads: dict[str, Array], words: dict[str, Any]) -> list[Part]:
        """The launches of a step, as the extension takes them."""
        made = []
        for group in self.groups:
            names = [name for name in group.names if name in grads]
            if names:
                made.append(self._part(group, names, grads, words))
        return made

    def _part(
        self, group: Group, names: list[str], grads: Mapping[str, Array], words: dict[str, Any]
    ) -> Part:
        arrays = self._parameters.arrays
        lists = [[self._states[kind][n] for n in names] for kind in self._state_names(group)]
        first, second, third = (*lists, [], [], [])[:3]
        masters = [self._masters[n] for n in names] if self._masters else []
        return (
            group.rule, [arrays[n] for n in names], [grads[n] for n in names], first, second,
            third, masters, self._options(group) | words,
        )  # fmt: skip

    def _options(self, group: Group) -> dict[str, Any]:
        return {
            **self._flags, "words": group.words, "rates": group.rates,
            "nesterov": bool(group.options.get("nesterov", self._flags["nesterov"])),
            "momentum": float(group.options.get("momentum", 0.0)),
            "seed": (self._seed + group.index * _GOLDEN) % 2**64,
        }  # fmt: skip

    def _named(self) -> dict[str, dict[str, Array]]:
        """The states by kind and name."""
        masters = {"masters": self._masters} if self._masters else {}
        return {**self._states, **masters, "steps": {"0": self.steps}}

    def state_dict(self) -> dict[str, Any]:
        """The arrays of the states, each kind in the nest of the parameters, "steps" and, if there
        are any, "masters": the same memory, no copies."""
        kinds = {**self._states, **({"masters": self._masters} if self._masters else {})}
        nests = {kind: self._parameters.nest(named) for kind, named in kinds.items()}
        return {**nests, "steps": self.steps}

    def load_state_dict(self, state: Mapping[str, Any], *, cast: bool = False) -> None:
        """Copies arrays as state_dict() returns them into the states, by their names.

        Raises NameNotFound for other kinds of states, and one InvalidArgument with all arrays that
        are missing, unexpected, or of another shape or dtype, before anything has changed. With
        `cast` other dtypes are converted.
        """
        own = self._named()
        if own.keys() != state.keys():
            raise NameNotFound(f"the states are {sorted(own)}, got {sorted(state)}")
        targets = _flat(own)
        given = _flat({kind: leaves(tensors_of(state[kind]), kind) for kind in own})
        load_named(targets, given, f"kw.optim.{type(self).__name__}", cast)

    def settings(self) -> list[dict[str, Any]]:
        """The hyperparameters of each group with the names of its parameters, and which of them it
        has for itself ("own"), for JSON; a learning rate on the device is read, which waits.

        >>> kw.optim.SGD(kw.ones(3), lr=0.1).settings()[0]["lr"]
        0.1
        """
        return [
            {name: _plain(value) for name, value in group.options.items()}
            | {"rule": group.rule, "names": list(group.names), "own": sorted(group.own)}
            for group in self.groups
        ]

    def load_settings(self, settings: list[dict[str, Any]]) -> None:
        """Sets hyperparameters as settings() gives them. Raises InvalidArgument for groups of other
        names or rules.

        >>> optimizer = kw.optim.SGD(kw.ones(3), lr=0.1)
        >>> optimizer.load_settings(kw.optim.SGD(kw.ones(3), lr=0.2).settings())
        >>> optimizer.settings()[0]["lr"]
        0.2
        """
        own = [(group.rule, group.names) for group in self.groups]
        given = [(each.get("rule"), each.get("names")) for each in settings]
        if own != given:
            raise InvalidArgument(
                f"the settings are of other groups, {given!r:.300} in place of {own!r:.300}"
            )
        for group, each in zip(self.groups, settings, strict=True):
            options = {name: each[name] for name in group.options if name in each}
            for name, value in options.items():
                if name == "lr" and isinstance(value, dict):
                    options[name] = Schedule(**value)
                elif name == "betas":
                    options[name] = tuple(value)
            if group.rates is not None and isinstance(options.get("lr"), float):
                group.rates._fill(options.pop("lr"))
            group._change(options)
            group.own = set(each.get("own", group.own))
        for rule, defaults in self._defaults.items():  # what lr and weight_decay show
            for name in defaults:
                shared = [g for g in self.groups if g.rule == rule and name not in g.own]
                if shared:
                    defaults[name] = shared[0].options[name]

    def __repr__(self) -> str:
        count = sum(p.size for p in self.params)
        return f"<kw.optim.{type(self).__name__} of {count} parameters, lr={self.lr}>"


def _flat(kinds: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    return {
        kind if kind == "steps" else f"{kind}[{name}]": array
        for kind, named in kinds.items()
        for name, array in named.items()
    }


def tensors_of(value: Any) -> Any:
    """A nest as it is; other iterables as a list."""
    return value if isinstance(value, (Mapping, list, tuple)) else tensors(value)


def _plain(value: Any) -> Any:
    if isinstance(value, Schedule):
        return value.as_dict()
    if isinstance(value, Array):
        return float(device_array(value).item())
    if isinstance(value, (list, tuple)):
        return [float(each) for each in value]
    return value if isinstance(value, bool) else float(value)


def _state_dtype(param: Array) -> str:
    return "float64" if param.dtype.name == "float64" else "float32"
