"""Functions with gradients, made of functions."""

from __future__ import annotations

import functools
import operator
import types
from collections.abc import Callable, Sequence
from typing import Any

import kernwright as kw
from kernwright._core import Array, _Node
from kernwright._grad import draws, handlers, nests
from kernwright._grad.backward import gradients, needed_memory
from kernwright._grad.recording import (
    Place,
    Recording,
    Watch,
    note_joint,
    recorded,
    recordings,
    starting_with,
    touched,
    unrecorded,
)
from kernwright._support.modules import is_module
from kernwright.errors import ArgumentError, InvalidArgument

__all__ = [
    "checkpoint",
    "custom_gradient",
    "grad",
    "stop_gradient",
    "value_and_grad",
    "vjp",
]

handlers.install()


def value_and_grad(
    f: Callable[..., Any], wrt: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., tuple[Any, Any]]:
    """A function that returns what `f` returns, and its gradient.

    `f` returns an array without axes, the loss; with `has_aux`, (loss, anything), and so does the
    new function: ((loss, anything), gradient). `wrt` says of which positional arguments the
    gradient is taken: a number, or a sequence of them, which gives a tuple of gradients. Such an
    argument is an array, a kw.nn.Module, or a dict, list or tuple of them. The gradient is as the
    argument: an array of its shape and dtype, a nest; of a module it is that of
    `trainable_parameters()`, nested dicts. Arguments that the loss does not depend on have zeros.

    Everything that `f` computes with arrays is recorded: operators, functions of kw, kw.nn,
    kw.linalg and kw.fft, indexing, assignment to parts of new arrays. What it reads on the host
    (.numpy(), .item(), a branch on a value) is a constant, and so are arrays that are no arguments
    of `wrt`. 16-bit gradients of an array used many times are summed in float32. Work is queued on
    the current stream, as by any other call.

    Raises InvalidArgument where the loss is no scalar, where `f` writes into an argument, and where
    memory that a gradient needs was overwritten; ArgumentError for integers in `wrt`, and for an
    operation without a gradient, which it names: kw.stop_gradient() makes a constant of its
    argument. A call of several threads at a time is safe.

    >>> loss = lambda w, x: (x @ w).sum() ** 2
    >>> value, gradient = kw.value_and_grad(loss)(kw.ones(2), kw.asarray([[1.0, 3.0]]))
    >>> value.item(), gradient.numpy().tolist()
    (16.0, [8.0, 24.0])
    """
    numbers, is_single = _numbers(wrt)
    _require_callable(f, "f")

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        with recorded() as recording:
            given, wanted, found = _entered(recording, args, numbers)
            made = f(*given, **kwargs)
            loss = _first_of(made) if has_aux else made
            place = _place_of_loss(recording, loss)
        nodes, one = list(found), kw.ones_like(loss)
        with starting_with(one):
            arrived = [] if place is None else [(place, one)]
            values = dict(zip(nodes, gradients(recording, arrived, nodes), strict=True))
        nest = nests.filled(wanted, values)
        return made, nest[0] if is_single else nest

    return call


def grad(
    f: Callable[..., Any], wrt: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that returns the gradient of `f` alone: value_and_grad() without the value. With
    `has_aux`: (gradient, anything).

    >>> kw.grad(lambda x: (x ** 3).sum())(kw.asarray([1.0, 2.0])).numpy().tolist()
    [3.0, 12.0]
    >>> second = kw.grad(lambda x: kw.grad(lambda x: (x ** 3).sum())(x).sum())
    >>> second(kw.asarray([1.0, 2.0])).numpy().tolist()
    [6.0, 12.0]
    """
    both = value_and_grad(f, wrt, has_aux)

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        made, gradient = both(*args, **kwargs)
        return (gradient, made[1]) if has_aux else gradient

    return call


def vjp(f: Callable[..., Any], *xs: Any) -> tuple[Any, Callable[[Any], tuple[Any, ...]]]:
    """What f(*xs) returns, and the function from its cotangent to those of `xs`, a tuple.

    The result of `f` is an array or a nest of arrays; a cotangent is such a nest, each array of the
    shape of its result (None: zeros). The function may be called again and again; until it is
    dropped, the values that it needs are kept, and overwriting one of them makes it raise
    InvalidArgument with both places.

    >>> y, back = kw.vjp(lambda x: x * x, kw.asarray([1.0, 2.0]))
    >>> back(kw.asarray([10.0, 1.0]))[0].numpy().tolist()
    [20.0, 4.0]
    """
    _require_callable(f, "f")
    with recorded() as recording:
        given, wanted, found = _entered(recording, xs, tuple(range(len(xs))))
        result = f(*given)
        places = [recording.place(each) for each in nests.arrays(result)]
    specs = [(each.shape, each.dtype) for each in nests.arrays(result)]
    recording.needed = needed_memory(places)
    nodes, watch = list(found), Watch()

    def back(cotangent: Any) -> tuple[Any, ...]:
        assert watch
        given = list(_cotangents(cotangent, result if not isinstance(result, Array) else None))
        if len(given) != len(specs):
            raise InvalidArgument(
                f"the cotangent has {len(given)} arrays, the result has {len(specs)}"
            )
        arrived = []
        for place, part, (shape, dtype) in zip(places, given, specs, strict=True):
            if part is None:
                continue
            if not isinstance(part, Array):
                raise ArgumentError(
                    f"the cotangent is {type(part).__name__} {part!r:.40}, and must be an array of "
                    f"shape {shape}"
                )
            if part.shape != shape:
                raise InvalidArgument(
                    f"the cotangent has the shape {part.shape}, the result {shape}"
                )
            if place is not None:
                arrived.append((place, part.astype(dtype, copy=False)))
        values = dict(zip(nodes, gradients(recording, arrived, nodes), strict=True))
        return nests.filled(wanted, values)  # type: ignore[no-any-return]

    return result, back


def _cotangents(value: Any, like: Any) -> list[Any]:
    """The members of a cotangent in the order of the result's arrays; None where there is none."""
    if like is None or value is None:
        return [value]
    found, wanted = nests.children(value), nests.children(like)
    if wanted is None:
        return [value] if isinstance(like, Array) else []
    if found is None or [key for key, _ in found] != [key for key, _ in wanted]:
        raise InvalidArgument("the cotangent is a nest as the result of the function")
    pairs = zip(found, wanted, strict=True)
    return [part for (_, a), (_, b) in pairs for part in _cotangents(a, b)]


def stop_gradient(x: Any) -> Any:
    """`x`, an array or a nest of arrays, as a constant: it has the same memory and no gradient.
    Raises ArgumentError for modules: freeze() takes their parameters out.

    >>> f = lambda x: (x * kw.stop_gradient(x)).sum()
    >>> kw.grad(f)(kw.asarray([3.0])).numpy().tolist()
    [3.0]
    """
    with unrecorded():
        return nests.mapped(lambda array, path: array.view(), x, other=_no_module)


def _no_module(value: Any, path: str) -> Any:
    if is_module(value):
        raise ArgumentError(
            f"stop_gradient() takes arrays and nests of them, got a module, {type(value).__name__}"
            f"{path and ' at ' + path}: freeze() it, or pass what it returns"
        )
    return value


def checkpoint(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function that computes what `f` does, and keeps none of its intermediate values for a
    gradient: they are computed again when the gradient needs them (gradient checkpointing; T. Chen
    et al., "Training deep nets with sublinear memory cost", 2016).

    `f` takes anything and returns an array or a nest of arrays. It must compute the same when it is
    called again, and it must not write into arrays that were there before. Variables that it closes
    over keep the values of the call; what it reads of globals, attributes and dicts must not change
    until the gradient is there. Random numbers and masks of dropout are drawn again as they were,
    and no generator moves on. Parameters of modules that it closes over have gradients, too.

    >>> f = kw.checkpoint(lambda x: kw.exp(kw.sin(x)))
    >>> kw.grad(lambda x: f(x).sum())(kw.zeros(2)).numpy().tolist()
    [1.0, 1.0]
    """
    _require_callable(f, "f")

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not recordings():
            return f(*args, **kwargs)
        function = _with_its_variables(f)
        with touched() as operands, draws.kept() as drawn:
            result = function(*args, **kwargs)
        inputs = operands()
        outputs = nests.arrays(result)

        def pullback(*cotangents: Any) -> Sequence[Any]:
            with recorded() as recording, draws.repeated(drawn):
                leaves = [recording.add_leaf(each) for each in inputs]
                again = nests.arrays(function(*args, **kwargs))
                places = [recording.place(each) for each in again]
            if [each.shape for each in again] != [each.shape for each in outputs]:
                raise InvalidArgument("a function under checkpoint() returned other shapes again")
            pairs = zip(places, cotangents, strict=True)
            arrived = [
                (place, part) for place, part in pairs if place is not None and part is not None
            ]
            return gradients(recording, arrived, leaves)

        note_joint("checkpoint()", inputs, outputs, pullback)
        return result

    return call


def _with_its_variables(f: Callable[..., Any]) -> Callable[..., Any]:
    """The function with the present values of its free variables: a loop goes on."""
    if not isinstance(f, types.FunctionType) or not f.__closure__:
        return f
    cells = []
    for cell in f.__closure__:
        try:
            cells.append(types.CellType(cell.cell_contents))
        except ValueError:  # a variable without a value yet
            cells.append(cell)
    made = types.FunctionType(f.__code__, f.__globals__, f.__name__, f.__defaults__, tuple(cells))
    made.__kwdefaults__ = f.__kwdefaults__
    return made


def custom_gradient(
    forward: Callable[..., tuple[Any, Any]], backward: Callable[..., Any]
) -> Callable[..., Any]:
    """A function with a gradient of the user's own: for kernels from strings, and for formulas
    that are better than those of the operations.

    forward(*args) returns (result, saved): an array or a nest of arrays, and whatever `backward`
    needs. Keyword arguments of a call go to `forward`, and have no gradients.
    backward(saved, cotangent) returns the gradient of each positional argument, in a tuple (None:
    it has none); for one argument it may be the gradient alone. The cotangent has the nest and the
    shapes of the result. Inside of `forward` nothing is recorded, so it may launch kernels. Inside
    of `backward` operations are recorded where a second derivative is asked for.

    >>> clip = kw.custom_gradient(lambda x: (x, None), lambda saved, g: kw.clip(g, -1, 1))
    >>> kw.grad(lambda x: (5 * clip(x)).sum())(kw.ones(2)).numpy().tolist()
    [1.0, 1.0]
    """
    _require_callable(forward, "forward")
    _require_callable(backward, "backward")

    @functools.wraps(forward)
    def call(*args: Any, **constants: Any) -> Any:
        with touched() as used:
            made = forward(*args, **constants)
        given = {id(array) for array in nests.arrays(args)}
        if any(id(array) not in given for array in used()):
            raise ArgumentError(
                "forward() of custom_gradient() computes with an array that has a gradient and is "
                "none of its arguments by position: pass it there, or kw.stop_gradient() of it"
            )
        with unrecorded():
            if not (isinstance(made, tuple) and len(made) == 2):
                raise ArgumentError(
                    "forward() of custom_gradient() returns (result, saved), got "
                    f"{type(made).__name__}"
                )
            result, saved = made
            # An argument returned as a result is another array from here on.
            result = nests.mapped(lambda array, path: array.view(), result)
        outputs = nests.arrays(result)

        def pullback(*cotangents: Any) -> Sequence[Any]:
            parts = iter(
                kw.zeros_like(output) if part is None else part
                for part, output in zip(cotangents, outputs, strict=True)
            )
            given = nests.mapped(lambda array, path: next(parts), result)
            found = backward(saved, given)
            if not isinstance(found, (tuple, list)):
                found = (found,)
            if len(found) != len(args):
                raise InvalidArgument(
                    f"backward() of custom_gradient() returned {len(found)} gradients for "
                    f"{len(args)} arguments"
                )
            pairs = enumerate(zip(args, found, strict=True))
            return [each for i, (given, part) in pairs for each in _parts_of(i, given, part)]

        note_joint("custom_gradient()", nests.arrays(args), outputs, pullback)
        return result

    return call


def _parts_of(number: int, argument: Any, gradient: Any) -> list[Any]:
    """The arrays of what backward() returned for an argument, with the shapes of its arrays."""
    members, where = nests.arrays(argument), f"argument {number}"
    parts = [None] * len(members) if gradient is None else nests.arrays(gradient)
    if len(parts) != len(members):
        raise InvalidArgument(
            f"backward() of custom_gradient() returned {type(gradient).__name__} with {len(parts)} "
            f"arrays of a device for {where}, which has {len(members)}"
        )
    for array, each in zip(members, parts, strict=True):
        if each is not None and each.shape != array.shape:
            raise InvalidArgument(
                f"backward() of custom_gradient() returned a gradient of shape {each.shape} for "
                f"{where} of shape {array.shape}"
            )
    return parts


def _require_callable(f: Any, name: str) -> None:
    if not callable(f):
        raise ArgumentError(f"{name} is a function, got {type(f).__name__}")


def _numbers(wrt: Any) -> tuple[tuple[int, ...], bool]:
    """The numbers of arguments, and whether one was given alone."""
    try:
        if isinstance(wrt, bool):
            raise TypeError
        if not isinstance(wrt, (tuple, list)):
            return (operator.index(wrt),), True
        found = tuple(operator.index(each) for each in wrt)
    except TypeError:
        raise ArgumentError(
            f"wrt is the number of a positional argument, or several of them, got {wrt!r:.60}"
        ) from None
    if not found or len(set(found)) != len(found):
        raise InvalidArgument(f"wrt names arguments, each once, got {wrt!r:.60}")
    return found, False


def _entered(
    recording: Recording, args: tuple[Any, ...], numbers: tuple[int, ...]
) -> tuple[list[Any], tuple[Any, ...], dict[_Node, None]]:
    """The arguments as the function gets them, the nests of leaves, and all leaves."""
    given, found = list(args), dict[_Node, None]()

    def add(array: Array) -> _Node:
        place = recording.place(array)
        node = recording.add_leaf(array) if place is None else place[0]
        found[node] = None
        return node

    wanted = []
    for number in numbers:
        if not -len(args) <= number < len(args):
            raise InvalidArgument(
                f"wrt names argument {number}, and the function got {len(args)} positional ones"
            )
        given[number], nest = nests.leaves(args[number], f"argument {number}", add)
        wanted.append(nest)
    if len({number % len(args) for number in numbers}) != len(numbers):
        raise InvalidArgument(f"wrt names arguments, each once, got {numbers} for {len(args)}")
    return given, tuple(wanted), found


def _first_of(made: Any) -> Any:
    if not (isinstance(made, tuple) and len(made) == 2):
        raise ArgumentError(
            f"with has_aux the function returns (loss, anything), got {type(made).__name__}"
        )
    return made[0]


def _place_of_loss(recording: Recording, loss: Any) -> Place | None:
    if not isinstance(loss, Array):
        raise ArgumentError(
            f"the loss is {type(loss).__name__} {loss!r:.40}, and must be an array without axes"
        )
    if loss.shape != ():
        raise InvalidArgument(
            f"the loss has the shape {loss.shape}, and must be an array without axes: return its "
            "sum() or mean(), or call kw.vjp()"
        )
    if not nests.is_real_or_complex(loss.dtype) or loss.dtype.kind == "c":
        raise ArgumentError(f"the loss is of {loss.dtype}, and must be a real number with a point")
    return recording.place(loss)
