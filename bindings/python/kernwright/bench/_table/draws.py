"""Random rows of the table: shapes, dtypes and layouts of language models, and odd ones."""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Callable, Mapping, Sequence

import kernwright as kw
from kernwright.bench._table.operations import OPERATIONS
from kernwright.bench._table.plan import Planned
from kernwright.bench._table.work import Operation, Shape
from kernwright.errors import InvalidArgument, NameNotFound

MOST_DRAWS = 100_000
_HIDDEN = (768, 1024, 1536, 2048, 2560, 3072, 3584, 4096, 5120, 6144, 7168, 8192, 12288, 16384)
_FEED_FORWARD = (3072, 4864, 8192, 8960, 11008, 13824, 14336, 18432, 18944, 28672, 29568)
_VOCABULARIES = (32000, 50257, 50304, 100352, 128256, 151936, 152064, 256000, 262144)
_HEADS = (8, 12, 16, 20, 24, 32, 40, 48, 64, 96)
_KEY_HEADS = (1, 2, 4, 8, 16)
_HEAD_SIZES = (64, 64, 80, 96, 128, 128, 128, 256)
_DECODED = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 256)  # sequences of a batch, a token each
_PREFILLED = (512, 1024, 2048, 3000, 4096, 6000, 8192, 16384, 32768)
_ODD = 0.2  # the chance that an extent is any number of its range, not one of a model
_MOST_BYTES = 1 << 29  # of an array
_MOST_FLOPS = {"float32": 4e11, "bfloat16": 5e12, "float16": 5e12}
_SMALL = 1 << 12  # elements, on the simulated device
_TRIES = 1000  # draws in a row without a new one

Draw = random.Random


def _odd(draw: Draw, low: int, high: int) -> int:
    """Log-uniform in the range."""
    return round(math.exp(draw.uniform(math.log(low), math.log(high))))


def _of(draw: Draw, known: Sequence[int]) -> int:
    return _odd(draw, min(known), max(known)) if draw.random() < _ODD else draw.choice(known)


def _tokens(draw: Draw) -> int:
    return _of(draw, draw.choice((_DECODED, _PREFILLED)))


def _row(draw: Draw) -> int:
    """The elements of a row: of a hidden state, a layer's inside, scores or logits."""
    known = draw.choices((_HIDDEN, _FEED_FORWARD, _PREFILLED, _VOCABULARIES), (5, 2, 2, 2))[0]
    return _of(draw, known)


def _matrix(draw: Draw) -> Shape:
    return _tokens(draw), _row(draw)


def _states(draw: Draw) -> Shape:
    """As norms take them: hidden states, some of a layer's inside; queries and keys of a head."""
    if draw.random() < 0.2:
        return _tokens(draw) * draw.choice(_HEADS), draw.choice(_HEAD_SIZES)
    return _tokens(draw), _of(draw, _HIDDEN if draw.random() < 0.85 else _FEED_FORWARD)


def _flat(draw: Draw) -> Shape:
    return (_odd(draw, 1 << 10, 1 << 27),)


def _layers(draw: Draw) -> Shape:
    return _of(draw, _DECODED), _of(draw, _PREFILLED), _of(draw, _HIDDEN)


def _product(draw: Draw) -> Shape:
    """Rows, columns and inner extent of x @ weights.T."""
    hidden, wide = _of(draw, _HIDDEN), _of(draw, _FEED_FORWARD)
    qkv = hidden + 2 * 128 * draw.choice(_KEY_HEADS)
    last = draw.choice(_VOCABULARIES)
    pairs = ((qkv, hidden), (hidden, hidden), (wide, hidden), (hidden, wide), (last, hidden))
    columns, inner = draw.choices(pairs, (3, 3, 3, 3, 1))[0]
    return _tokens(draw), columns, inner


def _attention(draw: Draw) -> Shape:
    return _of(draw, _HEADS), _of(draw, _PREFILLED), draw.choice(_HEAD_SIZES)


def _cache(draw: Draw) -> Shape:
    return (_of(draw, _DECODED), draw.choice(_KEY_HEADS), _of(draw, _PREFILLED),
            draw.choice(_HEAD_SIZES))  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Kind:
    """Operations that are drawn from one distribution of shapes, equally often."""

    name: str
    operations: tuple[str, ...]
    shape: Callable[[Draw], Shape]
    layouts: Mapping[str, int]  # with weights
    dtypes: Mapping[str, int]
    weight: int  # how often it is drawn


_BY_ROW = {"contiguous": 7, "sliced": 1, "every other row": 1, "shifted": 1}
_BY_MATRIX = {"contiguous": 6, "sliced": 1, "transposed": 2, "shifted": 1}
_BY_FLAT = {"contiguous": 7, "every other row": 1, "shifted": 2}
_BY_HEAD = {"contiguous": 1, "heads inside": 1}
_USUAL = {"bfloat16": 6, "float16": 2, "float32": 2}
_HALVES = {"bfloat16": 3, "float16": 1}

KINDS: tuple[Kind, ...] = (
    Kind("rows", ("softmax",), _matrix, _BY_ROW, _USUAL, 3),
    Kind("rows", ("softmax backward",), _matrix, {"contiguous": 1}, _USUAL, 1),
    Kind("rows", ("rms_norm", "layer_norm"), _states, _BY_ROW, _USUAL, 4),
    Kind("rows", ("rms_norm backward", "layer_norm backward"), _states, {"contiguous": 1},
         _USUAL, 1),
    Kind("reductions", ("sum of rows", "sum of columns", "max of rows", "argmax of rows",
                        "var of rows"), _matrix, _BY_MATRIX, _USUAL, 5),
    Kind("reductions", ("sum of middle axis",), _layers, _BY_MATRIX, _USUAL, 1),
    Kind("reductions", ("sum", "mean", "max", "argmax"), _flat, _BY_FLAT, _USUAL, 1),
    Kind("reductions", ("cumsum",), _flat, _BY_FLAT, {"float32": 1}, 1),
    Kind("products", ("matmul",), _product, {"contiguous": 8, "sliced": 1, "shifted": 1},
         {"bfloat16": 6, "float16": 2, "float32": 1}, 8),
    Kind("attention", ("attention", "attention, causal"), _attention, _BY_HEAD, _HALVES, 4),
    Kind("attention", ("decode attention",), _cache, _BY_HEAD, _HALVES, 2),
)  # fmt: skip
NAMES = tuple(dict.fromkeys(kind.name for kind in KINDS))
_OPERATION = {operation.name: operation for operation in OPERATIONS}
KIND_OF = {name: kind.name for kind in KINDS for name in kind.operations}


def _halved(shape: Shape, fits: Callable[[Shape], bool], evenly: bool) -> Shape:
    """Extents are halved until the shape fits: the largest one, or the first ones first, which are
    tokens, before what a model fixes."""
    extents = list(shape)
    while not fits(tuple(extents)) and max(extents) > 1:
        large = max(extents) if evenly else next(extent for extent in extents if extent > 1)
        place = extents.index(large)
        extents[place] = (large + 1) // 2
    return tuple(extents)


def _cost(name: str, shape: Shape) -> float:
    """Operations of work that is bound by them, else 0."""
    if name == "matmul":
        return 2.0 * math.prod(shape)
    if name.startswith("attention"):
        return 4.0 * math.prod(shape) * shape[1]
    return 0.0


def _elements(name: str, shape: Shape) -> int:
    """Those of the largest array."""
    if name != "matmul":
        return math.prod(shape)
    rows, columns, inner = shape
    return max(rows * columns, rows * inner, columns * inner)


def _fitted(operation: Operation, shape: Shape, dtype: str, simulated: bool) -> Shape:
    size = 4 if dtype == "float32" else 2
    most = _SMALL if simulated else _MOST_BYTES // size
    flops = 64.0 * _SMALL if simulated else _MOST_FLOPS.get(dtype, 1e11)

    def fits(some: Shape) -> bool:
        name = operation.name
        return _elements(name, some) <= most and _cost(name, some) <= flops

    return _halved(shape, fits, evenly=simulated)


def _chosen(only: Sequence[str] | None) -> list[Kind]:
    """Kinds with the operations that are left of them by the names of kinds or texts in names."""
    if only is None:
        return list(KINDS)
    found = []
    for kind in KINDS:
        left = tuple(name for name in kind.operations
                     if any(text == kind.name or text in name for text in only))  # fmt: skip
        if left:
            found.append(dataclasses.replace(kind, operations=left))
    if not found:
        raise NameNotFound(f"no drawn operation has {' or '.join(only)} in its name; kinds: "
                           f"{', '.join(NAMES)}; operations: {', '.join(KIND_OF)}")  # fmt: skip
    return found


def _weighted(draw: Draw, weights: Mapping[str, int]) -> str:
    return draw.choices(list(weights), list(weights.values()))[0]


def _one(
    draw: Draw, kinds: Sequence[Kind], dtypes: Sequence[str] | None, simulated: bool
) -> Planned:
    kind = draw.choices(kinds, [kind.weight for kind in kinds])[0]
    operation = _OPERATION[draw.choice(kind.operations)]
    left = {name: w for name, w in kind.dtypes.items() if dtypes is None or name in dtypes}
    dtype = _weighted(draw, left)
    shape = _fitted(operation, kind.shape(draw), dtype, simulated)
    return Planned(operation, shape, dtype, _weighted(draw, kind.layouts))


def drawn(
    count: int,
    seed: int,
    only: Sequence[str] | None = None,
    dtypes: Sequence[str] | None = None,
    simulated: bool | None = None,
) -> list[Planned]:
    """So many rows, no two alike: the same for a seed on every machine, but small ones on the
    simulated device. `only` takes names of kinds ("rows", "reductions", "products", "attention")
    and texts in names of operations."""
    if not 1 <= count <= MOST_DRAWS:
        raise InvalidArgument(f"{count} draws: from 1 to {MOST_DRAWS:,}")
    if simulated is None:
        simulated = kw.current_device().is_simulated
    kinds = [kind for kind in _chosen(only)
             if dtypes is None or any(dtype in kind.dtypes for dtype in dtypes)]  # fmt: skip
    if not kinds:
        raise InvalidArgument(f"no drawn operation has {' or '.join(dtypes or ())}; dtypes: "
                              "bfloat16, float16, float32")  # fmt: skip
    draw = random.Random(seed)
    found: dict[str, Planned] = {}
    tries = 0
    while len(found) < count and tries < _TRIES:
        row = _one(draw, kinds, dtypes, simulated)
        name = f"{row.operation.name} {row.axes}"
        tries = tries + 1 if name in found else 0
        found.setdefault(name, row)
    if len(found) < count:
        raise InvalidArgument(f"{count} different draws were not found, but {len(found)}")
    return list(found.values())
