"""Module: a piece of a network whose attributes are its parameters and its parts."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from kernwright._array.data_types import isdtype
from kernwright._core import Array
from kernwright._support.modules import register_module
from kernwright._support.names import module_attribute
from kernwright.errors import ArgumentError
from kernwright.nn._modules import state, tree
from kernwright.nn._modules.text import module_text

__all__ = ["Module"]


class LoadedNames(NamedTuple):
    """What Module.load(strict=False) left alone: parameters that the file lacks, and names of the
    file that the module has no parameter for."""

    missing: list[str]
    unexpected: list[str]


@register_module
class Module(tree.ModuleNode):
    """The base class of layers and networks: plain Python objects, called as functions.

    Attributes that are arrays are parameters; attributes that are modules, and lists, tuples and
    dicts of modules or arrays, are children. A parameter's name is its path: "layers.0.up.weight".
    Attributes whose names begin with "_" are neither. A subclass computes in `__call__()`; it needs
    no call of `super().__init__()`. An array that stands at several places is one parameter with
    the first of its names: tied weights stay tied through load(), save(), copy() and pickle.

    A module is not thread-safe while its attributes change.

    >>> class Net(kw.nn.Module):
    ...     def __init__(self):
    ...         self.up, self.down = kw.nn.Linear(2, 8, seed=1), kw.nn.Linear(8, 1, seed=2)
    ...     def __call__(self, x):
    ...         return self.down(kw.nn.silu(self.up(x)))
    >>> net = Net()
    >>> net(kw.ones((5, 2))).shape
    (5, 1)
    >>> [name for name, _ in net.named_parameters()]
    ['up.weight', 'up.bias', 'down.weight', 'down.bias']
    """

    _elsewhere: str = ""  # where parameters are that no attribute holds
    training: bool = True  # whether dropout and the like are at work; see train() and eval()

    def __init__(self) -> None:
        """Does nothing."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        name, hint = type(self).__name__, ""
        if "forward" in dir(type(self)):
            hint = ": it computes in __call__() here, so give its forward() that name"
        raise NotImplementedError(f"{name} has no __call__(){hint}")

    def parameters(self) -> dict[str, Any]:
        """The parameters in nested dicts whose keys are the parts of their names; positions in
        lists are keys, too: {"layers": {"0": {"weight": ...}}}.

        >>> kw.nn.Linear(2, 3).parameters()["weight"].shape
        (3, 2)
        """
        return tree.nest(tree.first_names(self))

    def trainable_parameters(self) -> dict[str, Any]:
        """parameters() without those that freeze() took out; a tied one is out if it was taken out
        under any of its names.

        >>> list(kw.nn.Linear(2, 3).freeze().trainable_parameters())
        []
        """
        return tree.nest(tree.trainable(self))

    def named_parameters(self) -> Iterator[tuple[str, Array]]:
        """Each parameter with its name, in the order of attributes.

        >>> [name for name, _ in kw.nn.Linear(2, 3).named_parameters()]
        ['weight', 'bias']
        """
        return iter(tree.first_names(self))

    def named_modules(self) -> Iterator[tuple[str, Module]]:
        """The module itself, with the name "", and all modules below it, each once.

        >>> net = kw.nn.Sequential(kw.nn.Linear(2, 3), kw.nn.silu)
        >>> [(name, type(each).__name__) for name, each in net.named_modules()]
        [('', 'Sequential'), ('0', 'Linear')]
        """
        return iter(tree.modules(self))

    def load(self, source: Any, strict: bool = True) -> LoadedNames:
        """Copies arrays by name into the parameters, converting their dtypes.

        `source` is a safetensors file, the index of one in parts, a GGUF file (its blocks come as
        numbers), or a mapping of names to arrays. Each parameter must be there with its shape, and
        each array must have a parameter; a name that is tied to another may be absent. Otherwise
        one InvalidArgument lists all that is missing, unexpected or of another shape, and nothing
        has changed. With strict=False, what is missing or unexpected is left alone and returned.
        Raises StoreError for files that cannot be read; arrays are read and copied one by one.

        >>> layer = kw.nn.Linear(2, 3)
        >>> layer.load({"weight": kw.ones((3, 2)), "bias": kw.zeros(3)})
        LoadedNames(missing=[], unexpected=[])
        """
        return LoadedNames(*state.load(self, source, strict))

    def save(self, path: Any, *, metadata: Mapping[str, str] | None = None) -> None:
        """Writes the parameters as a safetensors file, which replaces `path` only when it is whole.

        An array of several names is written once; `metadata["tied"]` tells the others, as JSON.
        Raises StoreError.

        >>> kw.nn.Linear(2, 3).save("linear.safetensors")
        >>> sorted(kw.load_safetensors("linear.safetensors"))
        ['bias', 'weight']
        """
        state.save(self, path, metadata)

    def astype(self, dtype: Any) -> Module:
        """Converts the parameters of floating-point numbers to `dtype`, one of floating-point
        numbers, too, in place of the old ones; returns the module.

        >>> kw.nn.Linear(2, 3).astype("bfloat16").weight.dtype.name
        'bfloat16'
        """
        if dtype is None or not isdtype(dtype, "real floating"):
            raise ArgumentError(f"parameters become numbers of a floating-point dtype, not {dtype}")
        tree.refuse_elsewhere(self, "astype()")
        tree.replace(self, lambda a: a.astype(dtype) if isdtype(a.dtype, "real floating") else a)
        return self

    def to(self, device: Any) -> Module:
        """Moves the parameters to a device; returns the module.

        >>> layer = kw.nn.Linear(2, 3)
        >>> layer.to(layer.weight.device) is layer
        True
        """
        tree.refuse_quantised(self, "to()")
        tree.replace(self, lambda a: a.to(device))
        return self

    def freeze(self) -> Module:
        """Takes the parameters that this module has now, and those below it, out of
        trainable_parameters(); returns the module.

        >>> kw.nn.Linear(2, 3).freeze().trainable_parameters()
        {}
        """
        for _, module in tree.modules(self):
            module._frozen = frozenset(name for name, _ in tree.own_arrays(module))
        return self

    def unfreeze(self) -> Module:
        """Undoes freeze(); returns the module.

        >>> list(kw.nn.Linear(2, 3).freeze().unfreeze().trainable_parameters())
        ['weight', 'bias']
        """
        for _, module in tree.modules(self):
            module.__dict__.pop("_frozen", None)
        return self

    def train(self, mode: bool = True) -> Module:
        """Sets `training` of this module and of those below it; returns the module.

        >>> kw.nn.Linear(2, 3).train().training
        True
        """
        if not isinstance(mode, bool):
            raise ArgumentError(f"mode is True or False, got {mode!r:.60}")
        for _, module in tree.modules(self):
            module.training = mode
        return self

    def eval(self) -> Module:
        """train(False).

        >>> kw.nn.Linear(2, 3).eval().training
        False
        """
        return self.train(False)

    def apply(self, function: Callable[[Module], Any]) -> Module:
        """Calls `function` with each module below this one, then with this one, as in torch;
        returns the module.

        >>> def zero(module):
        ...     if isinstance(module, kw.nn.Linear):
        ...         module.bias[...] = 0
        >>> net = kw.nn.Sequential(kw.nn.Linear(2, 3)).apply(zero)
        >>> net[0].bias.numpy()
        array([0., 0., 0.], dtype=float32)
        """
        for module in tree.modules_upwards(self):
            function(module)
        return self

    def copy(self) -> Module:
        """A copy with arrays of its own.

        >>> layer = kw.nn.Linear(2, 3)
        >>> other = layer.copy()
        >>> other.weight[...] = 0
        >>> bool((layer.weight == 0).all())
        False
        """
        return copy.deepcopy(self)

    if not TYPE_CHECKING:  # it raises for all names, and mypy would take it for an attribute

        def __getattr__(self, name: str) -> Any:
            other = getattr(super(), "__getattr__", None)  # of a class beside this one
            return module_attribute(self, name) if other is None else other(name)

    def extra_repr(self) -> str:
        """What repr() shows between the brackets of a module without children."""
        return ""

    def __repr__(self) -> str:
        return module_text(self)

    _frozen: frozenset[str] = frozenset()
