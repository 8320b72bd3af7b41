"""One line that makes a model's modules run on kernwright, and takes it back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from torch import nn

from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.torch import _attention, _modules, _recognise

__all__ = ["Acceleration", "Replacement", "accelerate"]

_KNOWN: dict[type[nn.Module], type[nn.Module]] = {
    nn.CrossEntropyLoss: _modules.CrossEntropyLoss,
    nn.Embedding: _modules.Embedding,
    nn.GELU: _modules.GELU,
    nn.GroupNorm: _modules.GroupNorm,
    nn.LayerNorm: _modules.LayerNorm,
    nn.LogSoftmax: _modules.LogSoftmax,
    nn.RMSNorm: _modules.RMSNorm,
    nn.SiLU: _modules.SiLU,
    nn.Softmax: _modules.Softmax,
}


_OWN = frozenset((*_KNOWN.values(), _modules.Linear))


class Replacement(NamedTuple):
    """A module of a model by its name there, its class before and now.

    >>> import torch, kernwright.torch as kt
    >>> [replaced] = kt.accelerate(torch.nn.Sequential(torch.nn.SiLU())).replaced
    >>> replaced.name, replaced.before.__name__, replaced.after.__name__
    ('0', 'SiLU', 'SiLU')
    """

    name: str
    before: type[nn.Module]
    after: type[nn.Module]
    module: nn.Module


class Acceleration:
    """What accelerate() did: `replaced`, and `left`, {name: why} of modules that torch keeps.

    >>> import torch, kernwright.torch as kt
    >>> done = kt.accelerate(torch.nn.Sequential(torch.nn.SiLU(), torch.nn.ReLU()))
    >>> len(done.replaced), done.left
    (1, {})
    >>> done.undo()
    """

    def __init__(self, replaced: list[Replacement], left: dict[str, str]) -> None:
        self.replaced = replaced
        self.left = left
        self.switch: _attention.AttentionSwitch | None = None

    def undo(self) -> None:
        """Gives every module its own class back, and torch its attention. Again does nothing."""
        if self.switch is not None:
            self.switch.undo()
            self.switch = None
        for each in self.replaced:
            if type(each.module) is each.after:
                each.module.__class__ = each.before
        self.replaced = []

    def __len__(self) -> int:
        return len(self.replaced)

    def __str__(self) -> str:
        count = len(self.replaced)
        modules = "1 module runs" if count == 1 else f"{count} modules run"
        lines = [f"{modules} on kernwright{':' if count else ''}"]
        for each in self.replaced:
            before, after = _name(each.before), _name(each.after)
            change = before if before == after else f"{before} -> {after}"
            lines.append(f"  {_place(each.name)}: {change}")
        if self.switch is not None:
            lines.append("  calls of torch's scaled_dot_product_attention, where ours takes them")
        lines += [f"  {_place(name)} stays torch's: {why}" for name, why in self.left.items()]
        return "\n".join(lines)


def accelerate(
    model: nn.Module,
    also: Mapping[type[nn.Module], type[nn.Module]] | None = None,
    *,
    linear: bool = False,
    attention: bool = False,
) -> Acceleration:
    """Makes modules of `model` run on kernwright, in place; returns what it replaced.

    RMSNorm, LayerNorm, GroupNorm, Softmax, LogSoftmax, SiLU, GELU, Embedding and CrossEntropyLoss
    of torch.nn become the subclasses of the same names in kernwright.torch: parameters, buffers,
    hooks, names and the state_dict stay, so optimisers and checkpoints go on. Classes derived from
    them are left alone, as they may do something else. RMS norms and gated layers of other packages
    (gate_proj, up_proj, down_proj, act_fn), as models of transformers have them, are replaced where
    they give what the formulas do for random numbers. `also` maps classes of your own to subclasses
    of them, which then are replaced too.

    `linear` adds torch.nn.Linear, for models that write token by token: its subclass takes few rows
    without gradients, and is torch's own for all else. `attention` turns switch_attention() on, for
    the whole process, until undo().

    Call it before torch.compile(). `undo()` of the result takes everything back. Raises
    ArgumentError if `model` is no module, InvalidArgument for a class in `also` that is no subclass
    or has another layout.

    >>> import torch, kernwright.torch as kt
    >>> model = torch.nn.Sequential(torch.nn.SiLU(), torch.nn.SiLU(inplace=True))
    >>> done = kt.accelerate(model)
    >>> print(done)
    1 module runs on kernwright:
      0: SiLU
      1 stays torch's: a SiLU in place
    >>> done.undo()
    """
    if not isinstance(model, nn.Module):
        raise ArgumentError(f"accelerate() takes a torch.nn.Module, got {type(model).__name__}")
    known = dict(_KNOWN)
    for before, after in (also or {}).items():
        if not issubclass(after, before):
            raise InvalidArgument(
                f"{_name(after)} is no subclass of {_name(before)}, which it is to replace: "
                "the modules keep their parameters and are still what they were"
            )
        known[before] = after
    if linear:
        known.setdefault(nn.Linear, _modules.Linear)
    done = Acceleration([], {})
    try:
        for name, module in model.named_modules():
            _replace(done, name, module, known.get(type(module)))
    except BaseException:
        done.undo()
        raise
    if attention:
        done.switch = _attention.switch_attention()
    return done


def _replace(
    done: Acceleration, name: str, module: nn.Module, after: type[nn.Module] | None
) -> None:
    before = type(module)
    if after is None:
        looks = _recognise.looks_like(module)
        if looks is None or before in _OWN:
            return
        after = _recognise.recognised(module)
        if after is None:
            done.left[name] = f"{_name(before)} looks like a {looks} and computes something else"
            return
    why = _obstacle(module)
    if why is not None:
        done.left[name] = why
        return
    try:
        module.__class__ = after
    except TypeError as error:
        raise InvalidArgument(
            f"{_place(name)}: {_name(before)} cannot become {_name(after)}: {error}"
        ) from None
    done.replaced.append(Replacement(name, before, after, module))


def _obstacle(module: nn.Module) -> str | None:
    """Why torch keeps a module of a known class, or None."""
    if isinstance(module, nn.Embedding):
        options = "max_norm", "scale_grad_by_freq", "sparse"
        used = [name for name in options if getattr(module, name)]
        return f"an Embedding with {used[0]}" if used else None
    if isinstance(module, nn.SiLU) and module.inplace:
        return "a SiLU in place"
    if isinstance(module, (nn.Softmax, nn.LogSoftmax)) and module.dim is None:
        return f"a {type(module).__name__} without dim"
    return None


def _place(name: str) -> str:
    return name or "(the model)"


def _name(cls: type) -> str:
    return cls.__qualname__
