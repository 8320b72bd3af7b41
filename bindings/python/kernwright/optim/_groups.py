"""Groups of parameters by name, and their hyperparameters on the device."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import kernwright
from kernwright._core import Array
from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.optim._functions import momentum_settings, not_negative, rate_of, two_betas
from kernwright.optim._nest import told
from kernwright.optim._schedules import Schedule

# The numbers in a group's words, in the order of the kernel; those of its schedule are behind them.
WORDS = ("lr", "beta1", "beta2", "eps", "weight_decay", "momentum", "dampening")
_SCHEDULED = len(WORDS) + 6


class Group:
    """Parameters with common hyperparameters, which lie on the device: a graph that has recorded a
    step uses what is set afterwards.

    `names` are those of its parameters, `options` its hyperparameters by name.
    """

    def __init__(
        self, rule: str, names: list[str], options: Mapping[str, Any], device: Any, index: int
    ) -> None:
        self.rule, self.names, self.index = rule, names, index
        self.options: dict[str, Any] = {}
        self.own: set[str] = set()  # options that the whole optimiser does not set
        self.plan = kernwright.zeros(_SCHEDULED, "float64", device=device)
        self._planned = False  # whether the words of a schedule are those of one
        self.rates: Array | None = None
        self._change(dict(options))

    @property
    def schedule(self) -> Schedule | None:
        """The schedule of the learning rate, where it has one."""
        lr = self.options["lr"]
        return lr if isinstance(lr, Schedule) else None

    @property
    def rate(self) -> Array:
        """The learning rate of the last step, one number on the device."""
        return self.words[:1] if self.rates is None else self.rates

    def set(self, **options: Any) -> None:
        """Changes hyperparameters of this group alone, from the next step on.

        >>> optimizer = kw.optim.SGD(kw.ones(3), lr=0.1)
        >>> optimizer.groups[0].set(lr=0.2)
        >>> optimizer.groups[0].options["lr"]
        0.2
        """
        require_options(options, self.options, f"this group's rule, {self.rule}, ")
        self._change(options)
        self.own |= set(options)

    @property
    def words(self) -> Array:
        """A view of the words that are no schedule's. No object keeps one: Scheduler.keep() takes
        the whole array."""
        return self.plan[: len(WORDS)]

    def _change(self, options: dict[str, Any]) -> None:
        check_options({**self.options, **options}, self.options)
        for name, value in options.items():
            if name == "lr":
                self._change_rate(value)
            elif name == "betas":
                self._write("beta1", value[0])
                self._write("beta2", value[1])
            elif name in WORDS:
                self._write(name, value)
        self.options |= options

    def _change_rate(self, lr: Any) -> None:
        self.rates = lr if isinstance(lr, Array) else None
        if isinstance(lr, Schedule):
            for place, word in enumerate(lr._words(), len(WORDS)):
                self.plan[place : place + 1]._fill(word)
        elif self._planned:
            self.plan[-1:]._fill(0.0)
        self._planned = isinstance(lr, Schedule)
        if not isinstance(lr, (Array, Schedule)):
            self._write("lr", lr)

    def _write(self, name: str, value: float) -> None:
        place = WORDS.index(name)
        self.words[place : place + 1]._fill(float(value))

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r:.60}" for name, value in self.options.items())
        return f"<{self.rule} of {len(self.names)} parameters, {shown}>"


def check_options(options: Mapping[str, Any], before: Mapping[str, Any]) -> None:
    """Raises where hyperparameters make no sense together, or with those before them."""
    lr = options["lr"]
    rate_of(lr.peak if isinstance(lr, Schedule) else lr)
    if isinstance(lr, Array) and (lr.size != 1 or lr.dtype.name != "float32"):
        raise InvalidArgument(f"lr is a number or an array of one float32, got {lr!r:.80}")
    for name in ("weight_decay", "eps"):
        if name in options:
            not_negative(options[name], name)
    if "betas" in options:
        two_betas(options["betas"])
    if "dampening" in options:
        momentum_settings(options["momentum"], options["dampening"], options["nesterov"])
        if before and (before["momentum"] == 0) != (options["momentum"] == 0):
            raise InvalidArgument(
                "momentum of 0 has no state: it cannot become another number, nor the other way "
                f"round, got {options['momentum']} after {before['momentum']}"
            )
    elif "momentum" in options and not 0 <= not_negative(options["momentum"], "momentum") < 1:
        raise InvalidArgument(f"momentum lies between 0 and 1, got {options['momentum']}")


def require_options(given: Mapping[str, Any], known: Sequence[str] | Any, whose: str) -> None:
    """Raises ArgumentError for a name that is no hyperparameter, with the nearest one."""
    for name in given:
        if name not in known:
            near = get_close_matches(str(name), list(known), 1, 0.4)
            meant = f": did you mean {near[0]!r}?" if near else f"; there are {', '.join(known)}"
            raise ArgumentError(f"{whose}has no {name!r:.60}{meant}")


def split_groups(
    params: Mapping[str, Array], given: Any, known: set[str]
) -> list[tuple[dict[str, Any], list[str]]]:
    """The options of each group with the names of its parameters; what no pattern matches comes
    last. Raises for a pattern that matches nothing, or only what earlier ones have taken."""
    left = list(params)
    found = []
    for number, one in enumerate(_listed_groups(given)):
        options = dict(one)
        if "match" not in options:
            raise ArgumentError(f'groups[{number}] has no "match": a pattern of names')
        match = options.pop("match")
        require_options(options, known, f"groups[{number}]: the optimiser ")
        fits = _matcher(match, number)
        matched = [name for name, array in params.items() if fits(name, array)]
        if not matched:
            raise InvalidArgument(
                f"groups[{number}] matches no parameter by {match!r:.80}: "
                f"{told({'the parameters are': left or list(params)})}"
            )
        names = [name for name in matched if name in left]
        if not names:
            raise InvalidArgument(
                f"groups[{number}] gets no parameter by {match!r:.80}: the groups before it have "
                f"taken all that it matches; {told({'which are': matched})}"
            )
        left = [name for name in left if name not in names]
        found.append((options, names))
    return [*found, ({}, left)] if left else found


def _listed_groups(given: Any) -> list[Mapping[str, Any]]:
    groups = [] if given is None else list(given) if isinstance(given, (list, tuple)) else None
    if groups is None or not all(isinstance(each, Mapping) for each in groups):
        raise ArgumentError(
            'groups are a list of dicts as {"match": "norm|bias", "weight_decay": 0.0}, '
            f"got {given!r:.80}"
        )
    return groups


def _matcher(match: Any, number: int) -> Callable[[str, Array], bool]:
    if callable(match):
        return lambda name, array: bool(match(name, array))
    if not isinstance(match, str):
        raise ArgumentError(
            f"groups[{number}]: match is a pattern or a function of name and array, got "
            f"{match!r:.60}"
        )
    try:
        pattern = re.compile(match)
    except re.error as error:
        raise InvalidArgument(f"groups[{number}]: {match!r:.80} is no pattern: {error}") from None
    return lambda name, _: pattern.search(name) is not None
