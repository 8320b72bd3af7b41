"""Folders of LoRA adapters as PEFT writes them, read and checked against a model."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import kernwright as kw
from kernwright._core import Array
from kernwright.llm._adapters.settings import CONFIG, TENSORS, AdapterSettings
from kernwright.llm._config import Config
from kernwright.llm._errors import ModelError
from kernwright.llm._fields import read_json
from kernwright.llm._names import Names, Place, place_of
from kernwright.llm.models._layers import Linear

__all__ = [
    "FILES", "Adapter", "AdapterWeights", "LowRank", "linear_at", "read_adapter", "read_ranks",
]  # fmt: skip

FILES = CONFIG, TENSORS
_NAME = re.compile(r"(?:base_model\.model\.)?(.+)\.lora_([AB])(?:\.[^.]+)?\.weight")
_DTYPES = ("float32", "float16", "bfloat16", "float64")


class Adapter(NamedTuple):
    """A LoRA adapter of a model: Model.adapters has those that are loaded.

    >>> from kernwright import llm
    >>> llm.Adapter("sql", "adapters/sql", 16, ("q_proj", "v_proj")).rank
    16
    """

    name: str
    """What `adapter=` calls it."""
    path: str
    """Its folder."""
    rank: int
    """The highest rank of its weights."""
    targets: tuple[str, ...]
    """The modules that it changes, by the last part of their names in the model's files."""


class LowRank(NamedTuple):
    """What is added to rows `rows` of a layer's weight: up (outputs, rank) @ down (rank, inputs),
    times `scale`."""

    down: Array
    up: Array
    scale: float
    rows: slice
    part: int | None = None
    """The number of the projection; None: all of the layer together."""

    @property
    def rank(self) -> int:
        return int(self.down.shape[0])


class AdapterWeights(NamedTuple):
    """An adapter that was read: by the paths of layers, what is added to them."""

    adapter: Adapter
    layers: dict[str, list[LowRank]]


def read_adapter(
    path: Any, name: str | None, module: Any, config: Config, *, most_rank: int, device: Any
) -> AdapterWeights:
    """The adapter in a folder. Raises ModelError, which names the file, and the field or tensor
    that is wrong or unknown; StoreError for damaged files."""
    with _opened(path, module, config, most_rank, device) as (tensors, modules):
        arrays = tensors.load([each for found in modules for each in (found.down, found.up)])
    layers: dict[str, list[LowRank]] = {}
    for found in modules:
        up = arrays[found.up]
        if found.in_pairs:
            up = _in_pairs(up, config.head_dim)
        made = LowRank(arrays[found.down], up, found.scale, found.rows, found.part)
        layers.setdefault(found.path, []).append(made)
    rank = max(each.rank for some in layers.values() for each in some)
    targets = tuple(sorted({found.target.rpartition(".")[2] for found in modules}))
    folder = os.fsdecode(path)
    usual = os.path.basename(os.path.abspath(folder))
    return AdapterWeights(Adapter(name or usual, folder, rank, targets), layers)


def read_ranks(
    path: Any, module: Any, config: Config, *, most_rank: int, device: Any
) -> dict[str, int]:  # fmt: skip
    """The highest rank of the adapter in a folder for each layer that it changes, by the path of
    the layer. Headers are read alone. Raises as read_adapter()."""
    with _opened(path, module, config, most_rank, device) as (_, modules):
        pass
    ranks: dict[str, int] = {}
    for found in modules:
        ranks[found.path] = max(found.rank, ranks.get(found.path, 0))
    return ranks


class _Changed(NamedTuple):
    """A module of an adapter's file: the names of its tensors, and what they change."""

    target: str
    path: str
    down: str
    up: str
    rank: int
    scale: float
    rows: slice
    part: int | None
    in_pairs: bool


@contextlib.contextmanager
def _opened(
    path: Any, module: Any, config: Config, most_rank: int, device: Any
) -> Iterator[tuple[kw.SafeTensors, list[_Changed]]]:
    """The tensors in a folder, and all modules of them, checked by the headers."""
    folder = _folder(path)
    settings = AdapterSettings(read_json(os.path.join(folder, CONFIG)))
    file = os.path.join(folder, TENSORS)
    with kw.SafeTensors(file, device=device) as tensors:
        yield tensors, _modules(file, settings, tensors, module, config, most_rank)


def _modules(
    file: str, settings: AdapterSettings, tensors: kw.SafeTensors, module: Any, config: Config,
    most_rank: int,
) -> list[_Changed]:  # fmt: skip
    names = getattr(module, "names", None)
    if names is None:
        raise ModelError(f"{type(module).__name__} has no table of names, which adapters need")
    pairs = _pairs(file, tensors)
    settings.require_targets(list(pairs))
    made: dict[str, list[_Changed]] = {}
    for target, pair in pairs.items():
        rank, scale = settings.rank_and_scale(target)
        where = f"{file}: {target}"
        found = _changed(where, target, pair, scale, tensors, module, names, config)
        if found.rank != rank:
            raise ModelError(f"{where} has rank {found.rank}, and {CONFIG} tells rank {rank}")
        if rank > most_rank:
            raise ModelError(
                f"{where} has rank {rank}, and the model takes {most_rank} at most: "
                "llm.load(max_adapter_rank=...) sets the limit"
            )
        there = made.setdefault(found.path, [])
        if any(each.rows.start < found.rows.stop and found.rows.start < each.rows.stop
               for each in there):  # fmt: skip
            raise ModelError(f"{where} is a module that the file has under another name, too")
        there.append(found)
    return [found for there in made.values() for found in there]


def _folder(path: Any) -> str:
    try:
        folder = os.fsdecode(path)
    except TypeError:
        raise kw.errors.ArgumentError(f"a path is a str or os.PathLike, got {path!r:.80}") from None
    for name in (CONFIG, TENSORS):
        if not os.path.isfile(os.path.join(folder, name)):
            raise ModelError(f"{folder} is no adapter: it has no {name}")
    return folder


def _pairs(file: str, tensors: kw.SafeTensors) -> dict[str, dict[str, str]]:
    """The names of the tensors A and B of each module. Raises ModelError for all others."""
    pairs: dict[str, dict[str, str]] = {}
    for name in tensors:
        found = _NAME.fullmatch(name)
        if found is None:
            raise ModelError(f"{file}: {name} is no lora_A.weight or lora_B.weight of a module")
        if tensors.dtype(name) not in _DTYPES or len(tensors.shape(name)) != 2:
            raise ModelError(
                f"{file}: {name} is a matrix of {', '.join(_DTYPES)}, got "
                f"{tensors.shape(name)} of {tensors.dtype(name)}"
            )
        pair = pairs.setdefault(found[1], {})
        if found[2] in pair:
            raise ModelError(f"{file}: {name} and {pair[found[2]]} are the same tensor")
        pair[found[2]] = name
    for target, pair in pairs.items():
        if len(pair) != 2:
            lacks = "B" if "A" in pair else "A"
            raise ModelError(f"{file}: {target} has no lora_{lacks}.weight")
    return pairs


def linear_at(module: Any, path: str) -> Any:
    """What stands at a path as "layers.3.mlp.down"; None where there is nothing."""
    found = module
    for key in path.split("."):
        if isinstance(found, (list, tuple)):
            found = found[int(key)] if int(key) < len(found) else None
        else:
            found = getattr(found, key, None)
    return found


def _changed(
    where: str, target: str, pair: Mapping[str, str], scale: float, tensors: kw.SafeTensors,
    module: Any, names: Names, config: Config,
) -> _Changed:  # fmt: skip
    """What a module of the files changes, by the shapes of its tensors."""
    place = place_of(f"{target}.weight", names)
    path = "" if place is None else place.path.removesuffix(".weight")
    path = re.sub(r"(?<=\.)0+(?=[0-9])", "", path)  # layers.00 is layers.0
    layer = None if place is None or place.entry is not None else linear_at(module, path)
    if place is None or not isinstance(layer, Linear) or place.change not in (None, "T"):
        what = "this model has no such module" if layer is None else f"{path} is none"
        if place is not None and place.entry is not None:
            what = "experts are none"
        raise ModelError(f"{where}: adapters change linear layers, and {what}")
    outputs, inputs = layer.extents
    rows, part = slice(0, outputs), None
    if place.part is not None:
        rows, part = layer.rows_of(place.part), layer.part_names().index(place.part)
    down, up = (tensors.shape(pair[letter]) for letter in "AB")
    rank, width = down[0], rows.stop - rows.start
    if down[1] != inputs or up != (width, rank):
        raise ModelError(
            f"{where}: A is (rank, {inputs}) and B ({width}, rank), got {down} and {up}"
        )
    in_pairs = _turns_in_pairs(place, module, config)
    return _Changed(target, path, pair["A"], pair["B"], rank, scale, rows, part, in_pairs)


def _turns_in_pairs(place: Place, module: Any, config: Config) -> bool:
    """Whether the rows of queries and keys lie as GGUF files have them, and adapters do not."""
    is_moved = config.flag("rope_interleaved", False) and not getattr(module, "interleaved", False)
    return is_moved and place.part in ("q", "k")


def _in_pairs(up: Array, head_dim: int) -> Array:
    """Rows i and i + head_dim / 2 of each head beside each other."""
    halves = up.reshape((-1, 2, head_dim // 2, up.shape[1]))
    return kw.stack([halves[:, 0], halves[:, 1]], axis=2).reshape(up.shape)
