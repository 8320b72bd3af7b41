"""Random expression graphs: a seed gives the same steps, and the same numbers, on every machine.

A graph has 5 to 40 steps; each is an operation on inputs or results of earlier steps, which may be
used often. A step that needs a domain comes after steps that bring its operand there, and one whose
results grow is followed by one that scales them. test_gradients_random.py runs the steps here;
tests/data/record_expression_graphs.py runs them in torch.
"""

import random
from typing import Any, NamedTuple

import numpy as np

import kernwright as kw

SHAPES = ((), (3,), (1,), (2, 3), (3, 3), (2, 1), (1, 3), (2, 2, 3))
LARGEST = 8.0  # a bound on what a step may return before it is scaled


class Step(NamedTuple):
    """An operation on values, by their numbers: inputs come first, then results of steps."""

    name: str
    operands: tuple[int, ...]
    options: tuple[Any, ...] = ()


class Expression(NamedTuple):
    """The inputs as NumPy's arrays, the steps, and the values that no step uses."""

    inputs: list[Any]
    steps: list[Step]
    results: list[int]


# Functions of one number: what is done to the operand before, and a bound on the result by that of
# the operand.
UNARY = {
    "abs": ("", lambda b: b), "acos": ("unit", lambda b: 3), "acosh": ("above 1", lambda b: b),
    "asin": ("unit", lambda b: 2), "asinh": ("", lambda b: b), "atan": ("", lambda b: 2),
    "atanh": ("unit", lambda b: 2), "cos": ("", lambda b: 1), "cosh": ("unit", lambda b: 2),
    "deg2rad": ("", lambda b: b), "erf": ("", lambda b: 1), "exp": ("unit", lambda b: 3),
    "exp2": ("unit", lambda b: 2), "expm1": ("unit", lambda b: 2), "i0": ("unit", lambda b: 2),
    "log": ("positive", lambda b: b + 1), "log10": ("positive", lambda b: b + 1),
    "log1p": ("positive", lambda b: b), "log2": ("positive", lambda b: b + 1),
    "negative": ("", lambda b: b), "reciprocal": ("positive", lambda b: 2),
    "rsqrt": ("positive", lambda b: 2), "sigmoid": ("", lambda b: 1), "silu": ("", lambda b: b),
    "sin": ("", lambda b: 1), "sinc": ("", lambda b: 1), "sinh": ("unit", lambda b: 2),
    "softplus": ("", lambda b: b + 1), "sqrt": ("positive", lambda b: b),
    "square": ("", lambda b: b * b), "tan": ("unit", lambda b: 2), "tanh": ("", lambda b: 1),
}  # fmt: skip
BINARY = {
    "add": ("", "", lambda a, b: a + b), "atan2": ("", "positive", lambda a, b: 2),
    "copysign": ("positive", "", lambda a, b: a), "divide": ("", "positive", lambda a, b: 2 * a),
    "fmax": ("", "", max), "fmin": ("", "", max),
    "hypot": ("positive", "", lambda a, b: a + b), "logaddexp": ("", "", lambda a, b: a + b + 1),
    "logaddexp2": ("", "", lambda a, b: a + b + 1), "maximum": ("", "", max),
    "minimum": ("", "", max), "multiply": ("", "", lambda a, b: a * b),
    "pow": ("positive", "unit", lambda a, b: a + 2), "subtract": ("", "", lambda a, b: a + b),
}  # fmt: skip
REDUCTIONS = {
    "sum": lambda b, n: b * n, "mean": lambda b, n: b, "max": lambda b, n: b,
    "min": lambda b, n: b, "prod": lambda b, n: max(b, 1) ** n, "logsumexp": lambda b, n: b + n,
    "var": lambda b, n: 4 * b * b, "norm": lambda b, n: b * n,
}  # fmt: skip
ALONG = {
    "softmax": lambda b, n: 1, "log_softmax": lambda b, n: 2 * b + n, "sort": lambda b, n: b,
    "cumulative_sum": lambda b, n: b * n, "cumulative_prod": lambda b, n: max(b, 1) ** n,
    "flip": lambda b, n: b, "roll": lambda b, n: b, "rows": lambda b, n: b,
    "reversed": lambda b, n: b, "gather": lambda b, n: b,
}  # fmt: skip


class _Graph:
    """The graph while it grows."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.values: list[tuple[tuple[int, ...], float]] = []  # shape and bound
        self.steps: list[Step] = []
        self.used: set[int] = set()

    def below(self, limit: int) -> int:
        return int(self.rng.random() * limit)

    def choice(self, given: Any) -> Any:
        return given[self.below(len(given))]

    def pick(self, fits: Any = None) -> int | None:
        """The number of a value, often one of the newest."""
        found = [i for i, (shape, _) in enumerate(self.values) if fits is None or fits(shape)]
        if not found:
            return None
        return self.choice(found[-3:] if self.rng.random() < 0.5 else found)

    def add(self, name, operands, shape, bound, *options):
        self.steps.append(Step(name, tuple(operands), options))
        self.used.update(operands)
        self.values.append((tuple(shape), bound))
        number = len(self.values) - 1
        if bound > LARGEST:
            return self.add("scale", (number,), shape, LARGEST / 2, LARGEST / 2 / bound)
        return number

    def prepared(self, number: int, domain: str) -> int:
        shape, bound = self.values[number]
        if domain == "unit":
            number = self.add("tanh", (number,), shape, 1)
            return self.add("scale", (number,), shape, 0.9, 0.9)
        if domain:
            number = self.add("square", (number,), shape, bound * bound)
            more = 0.5 if domain == "positive" else 1.5
            return self.add("shift", (number,), shape, self.values[number][1] + more, more)
        return number

    def unary(self) -> None:
        name, number = self.choice(sorted(UNARY)), self.pick()
        domain, bound = UNARY[name]
        number = self.prepared(number, domain)
        shape, size = self.values[number]
        self.add(name, (number,), shape, bound(size))

    def binary(self) -> None:
        name, a = self.choice(sorted(BINARY)), self.pick()
        b = self.pick(lambda shape: _joined(shape, self.values[a][0]) is not None)
        first, second, bound = BINARY[name]
        a, b = self.prepared(a, first), self.prepared(b, second)
        (left, one), (right, other) = self.values[a], self.values[b]
        self.add(name, (a, b), _joined(left, right), bound(one, other))

    def choose(self) -> None:
        a = self.pick()
        shape = self.values[a][0]
        b = self.pick(lambda other: _joined(other, shape) is not None)
        joined = _joined(self.values[b][0], shape)
        bound = max(self.values[a][1], self.values[b][1])
        if self.rng.random() < 0.5:
            self.add("where", (a, b), joined, bound)
        else:
            self.add("clip", (a,), shape, bound, -0.75 * bound, 0.25 * bound)

    def reduction(self) -> None:
        number = self.pick(len)
        if number is None:
            return
        name, (shape, bound) = self.choice(sorted(REDUCTIONS)), self.values[number]
        if name == "norm":  # away from 0, where it has a kink
            number = self.prepared(number, "positive")
            bound = self.values[number][1]
        axis, keep = self.below(len(shape)), self.rng.random() < 0.5
        kept = (*shape[:axis], *((1,) if keep else ()), *shape[axis + 1 :])
        self.add(name, (number,), kept, REDUCTIONS[name](bound, shape[axis]), axis, keep)

    def along(self) -> None:
        number = self.pick(len)
        if number is None:
            return
        name, (shape, bound) = self.choice(sorted(ALONG)), self.values[number]
        axis, options = self.below(len(shape)), ()
        size, made = shape[axis], shape
        if name in ("rows", "gather"):
            places = tuple(self.below(size) for _ in range(1 + self.below(4)))
            options, made = (places,), (*shape[:axis], len(places), *shape[axis + 1 :])
        self.add(name, (number,), made, ALONG[name](bound, size), axis, *options)

    def view(self) -> None:
        number = self.pick()
        shape, bound = self.values[number]
        kinds = ["expand_dims", "broadcast_to"]
        kinds += ["reshape", "permute_dims", "part", "squeeze"] if shape else []
        name = self.choice(kinds)
        if name == "reshape":
            count = int(np.prod(shape))
            options = ((count,),) if self.rng.random() < 0.5 else ((1, count),)
            made = options[0]
        elif name == "permute_dims":
            order = tuple(sorted(range(len(shape)), key=lambda _: self.rng.random()))
            options, made = (order,), tuple(shape[i] for i in order)
        elif name == "part":
            first = self.below(shape[0])
            options, made = (first,), (shape[0] - first, *shape[1:])
        elif name == "squeeze":
            made = tuple(n for n in shape if n != 1)
            options = (tuple(i for i, n in enumerate(shape) if n == 1),)
        elif len(shape) > 2:
            return
        elif name == "expand_dims":
            axis = self.below(len(shape) + 1)
            options, made = (axis,), (*shape[:axis], 1, *shape[axis:])
        else:
            made = (2, *(3 if n == 1 else n for n in shape))
            options = (made,)
        self.add(name, (number,), made, bound, *options)

    def join(self) -> None:
        a = self.pick(len)
        if a is None:
            return
        shape = self.values[a][0]
        b = self.pick(lambda other: other == shape)
        name = self.choice(("concat", "stack"))
        made = (2 * shape[0], *shape[1:]) if name == "concat" else (2, *shape)
        if int(np.prod(made)) <= 48:
            self.add(name, (a, b), made, max(self.values[a][1], self.values[b][1]))

    def product(self) -> None:
        a = self.pick(lambda shape: len(shape) >= 2)
        if a is None:
            return
        shape = self.values[a][0]
        b = self.pick(lambda other: len(other) == 2 and other[0] == shape[-1])
        name = "matmul"
        if b is None:
            name = "rows_by_rows"
            b = self.pick(lambda other: len(other) == 2 and other[1] == shape[-1])
        if b is None:
            return
        (_, one), (right, other) = self.values[a], self.values[b]
        width = right[1] if name == "matmul" else right[0]
        self.add(name, (a, b), (*shape[:-1], width), one * other * shape[-1])

    def matrices(self) -> None:
        square = self.pick(lambda shape: len(shape) >= 2 and shape[-1] == shape[-2])
        if square is None:
            return
        shape = self.values[square][0]
        name = self.choice(("cholesky", "det", "inv", "slogdet", "solve"))
        square = self.prepared(square, "unit")
        if name == "cholesky":
            square = self.add("gram", (square,), shape, 3)
        else:
            square = self.add("dominant", (square,), shape, 5)
        if name != "solve":
            self.add(name, (square,), shape[:-2] if "det" in name else shape, 5.0 ** shape[-1])
            return
        right = self.pick(lambda other: len(other) == 2 and other[0] == shape[-1])
        if right is not None:
            made = (*shape[:-1], self.values[right][0][1])
            self.add("solve", (square, right), made, self.values[right][1])


_KINDS = {
    "unary": 5, "binary": 6, "choose": 1, "reduction": 2, "along": 2, "view": 3, "join": 1,
    "product": 2, "matrices": 1,
}  # fmt: skip


def _joined(a, b):
    """The shape that both are broadcast to; None where there is none, or a large one."""
    try:
        made = np.broadcast_shapes(a, b)
    except ValueError:
        return None
    return made if int(np.prod(made)) <= 48 else None


def expression(seed: int) -> Expression:
    """The graph of a seed."""
    graph = _Graph(seed)
    inputs = []
    for _ in range(2 + graph.below(3)):
        shape = graph.choice(SHAPES)
        numbers = [4 * graph.rng.random() - 2 for _ in range(int(np.prod(shape)))]
        inputs.append(np.array(numbers).reshape(shape))
        graph.values.append((shape, 2.0))
    length = 5 + graph.below(32)
    kinds = [name for name, weight in _KINDS.items() for _ in range(weight)]
    while len(graph.steps) < length:
        before = len(graph.steps)
        getattr(graph, graph.choice(kinds))()
        if len(graph.steps) > 40:  # an operation with what it needs before it
            graph.steps, graph.values = graph.steps[:before], graph.values[: before + len(inputs)]
            break
    used = {number for step in graph.steps for number in step.operands}
    results = [i for i in range(len(inputs), len(graph.values)) if i not in used]
    return Expression(inputs, graph.steps, results)


def _eye(x):
    return kw.eye(x.shape[-1], dtype=x.dtype, device=x.device)


# Steps by name; those that are missing are functions of kw.
STEPS = {
    "scale": lambda x, by: x * by,
    "shift": lambda x, by: x + by,
    "sigmoid": lambda x: kw.nn.sigmoid(x),
    "silu": lambda x: kw.nn.silu(x),
    "softplus": lambda x: kw.nn.softplus(x),
    "where": lambda a, b: kw.where(a > b, a * 2, b),
    "clip": lambda x, low, high: kw.clip(x, low, high),
    **{
        name: lambda x, axis, keep, n=name: getattr(kw, n)(x, axis=axis, keepdims=keep)
        for name in ("logsumexp", "max", "mean", "min", "prod", "sum", "var")
    },
    "norm": lambda x, axis, keep: kw.linalg.vector_norm(x, axis=axis, keepdims=keep),
    "softmax": lambda x, axis: kw.nn.softmax(x, axis=axis),
    "log_softmax": lambda x, axis: kw.nn.log_softmax(x, axis=axis),
    **{
        name: lambda x, axis, n=name: getattr(kw, n)(x, axis=axis)
        for name in ("cumulative_prod", "cumulative_sum", "flip", "sort")
    },
    "roll": lambda x, axis: kw.roll(x, 1, axis=axis),
    "rows": lambda x, axis, places: kw.take(x, kw.asarray(places), axis=axis),
    "reversed": lambda x, axis: x[(slice(None),) * axis + (slice(None, None, -1),)],
    "gather": lambda x, axis, places: kw.take_along_axis(
        x,
        kw.asarray(
            np.broadcast_to(
                np.reshape(places, (-1, *(1,) * (x.ndim - axis - 1))),
                (*x.shape[:axis], len(places), *x.shape[axis + 1 :]),
            ).copy()
        ),
        axis=axis,
    ),
    "reshape": lambda x, shape: x.reshape(shape),
    "part": lambda x, first: x[first:],
    "squeeze": lambda x, axes: kw.squeeze(x, axis=axes),
    "expand_dims": lambda x, axis: kw.expand_dims(x, axis=axis),
    "concat": lambda a, b: kw.concat([a, b]),
    "stack": lambda a, b: kw.stack([a, b]),
    "matmul": lambda a, b: a @ b,
    "rows_by_rows": lambda a, b: kw.einsum("...ij,kj->...ik", a, b),
    "gram": lambda x: x @ x.mT + _eye(x),
    "dominant": lambda x: x + 4 * _eye(x),
    "slogdet": lambda x: kw.linalg.slogdet(x).logabsdet,
    **{
        name: lambda *xs, n=name: getattr(kw.linalg, n)(*xs)
        for name in ("cholesky", "det", "inv", "solve")
    },
}


def value(graph: Expression, inputs, steps=None, module=kw):
    """The sum of the means of all results, with weights that tell them apart."""
    values, steps = list(inputs), STEPS if steps is None else steps
    for step in graph.steps:
        call = steps.get(step.name) or getattr(module, step.name)
        values.append(call(*(values[i] for i in step.operands), *step.options))
    parts = [values[i].mean() * (1 + k / 8) for k, i in enumerate(graph.results)]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total
