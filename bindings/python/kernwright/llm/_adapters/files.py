"""Folders of LoRA adapters as PEFT writes them, read and checked against a model."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import kernwright as kw
from kernwright._core import Array
from kernwright.llm._config import Config
from kernwright.llm._errors import ModelError
from kernwright.llm._fields import Fields, read_json
from kernwright.llm._names import Names, Place, place_of
from kernwright.llm.models._layers import Linear

__all__ = ["FILES", "Adapter", "AdapterWeights", "LowRank", "linear_at", "read_adapter"]

_CONFIG, _TENSORS = FILES = "adapter_config.json", "adapter_model.safetensors"
_NAME = re.compile(r"(?:base_model\.model\.)?(.+)\.lora_([AB])(?:\.[^.]+)?\.weight")
_DTYPES = ("float32", "float16", "bfloat16", "float64")
# Fields of variants of LoRA. An adapter that has one computes something else.
_UNSUPPORTED = (
    "use_dora", "use_qalora", "use_bdlora", "lora_bias", "modules_to_save", "layer_replication",
    "trainable_token_indices", "target_parameters", "alora_invocation_tokens", "arrow_config",
    "megatron_config",
)  # fmt: skip


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
    folder = _folder(path)
    fields = read_json(os.path.join(folder, _CONFIG))
    settings = _Settings(fields)
    file = os.path.join(folder, _TENSORS)
    names = getattr(module, "names", None)
    if names is None:
        raise ModelError(f"{type(module).__name__} has no table of names, which adapters need")
    with kw.SafeTensors(file, device=device) as tensors:
        pairs = _pairs(file, tensors)
        settings.require_targets(list(pairs))
        arrays = tensors.load([each for pair in pairs.values() for each in pair.values()])
    layers: dict[str, list[LowRank]] = {}
    for target, pair in pairs.items():
        found = {letter: arrays[each] for letter, each in pair.items()}
        rank, scale = settings.rank_and_scale(target)
        where = f"{file}: {target}"
        layer, made = _low_rank(where, target, found, scale, module, names, config)
        if made.rank != rank:
            raise ModelError(f"{where} has rank {made.rank}, and {_CONFIG} tells rank {rank}")
        if rank > most_rank:
            raise ModelError(
                f"{where} has rank {rank}, and the model takes {most_rank} at most: "
                "llm.load(max_adapter_rank=...) sets the limit"
            )
        there = layers.setdefault(layer, [])
        if any(each.rows.start < made.rows.stop and made.rows.start < each.rows.stop
               for each in there):  # fmt: skip
            raise ModelError(f"{where} is a module that the file has under another name, too")
        there.append(made)
    rank = max(each.rank for some in layers.values() for each in some)
    targets = tuple(sorted({each.rpartition(".")[2] for each in pairs}))
    usual = os.path.basename(os.path.abspath(folder))
    return AdapterWeights(Adapter(name or usual, folder, rank, targets), layers)


class _Settings:
    """adapter_config.json."""

    def __init__(self, fields: Fields) -> None:
        self._fields, values = fields, fields.values
        kind = fields.get("peft_type", str, "LORA")
        if kind != "LORA":
            raise fields.wrong("peft_type", f'is "LORA", got {kind!r:.40}')
        for name in _UNSUPPORTED:
            if values.get(name):
                raise fields.wrong(name, f"is not supported, got {values[name]!r:.60}")
        if fields.get("bias", str, "none") != "none":
            raise fields.wrong("bias", f'is "none", got {values["bias"]!r:.40}')
        self._rank = self._whole("r", fields.need("r", int))
        self._alpha = self._real("lora_alpha", fields.need("lora_alpha", float))
        self._root = fields.get("use_rslora", bool, False)
        self._ranks = fields.get("rank_pattern", dict, {})
        self._alphas = fields.get("alpha_pattern", dict, {})
        targets = values.get("target_modules")
        if not isinstance(targets, (str, list)):
            raise fields.wrong(
                "target_modules", f"is a list of names or a pattern, got {targets!r:.60}"
            )
        self._targets: str | list[str] = (
            targets if isinstance(targets, str) else fields.texts("target_modules")
        )

    def _whole(self, name: str, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value < 2**31:
            raise self._fields.wrong(name, f"has ranks from 1 to 2^31 - 1, got {_shown(value)}")
        return value

    def _real(self, name: str, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self._fields.wrong(name, f"has numbers, got {value!r:.40}")
        if not abs(value) < 2.0**127:
            raise self._fields.wrong(name, f"is a finite number, got {_shown(value)}")
        return float(value)

    def rank_and_scale(self, target: str) -> tuple[int, float]:
        """Of a module: its own where a pattern names it."""
        rank = self._whole("rank_pattern", _of_pattern(self._ranks, target, self._rank))
        alpha = self._real("alpha_pattern", _of_pattern(self._alphas, target, self._alpha))
        return rank, alpha / (math.sqrt(rank) if self._root else rank)

    def require_targets(self, modules: Sequence[str]) -> None:
        """Raises ModelError unless target_modules and the file have the same modules."""
        targets = self._targets
        if not modules:
            raise self._fields.wrong("target_modules", f"has no tensors in {_TENSORS}")
        if targets == "all-linear":
            return
        if isinstance(targets, str):
            try:
                chosen = {each for each in modules if re.fullmatch(targets, each)}
            except re.error as error:
                raise self._fields.wrong(
                    "target_modules", f"is no pattern: {error}: {targets!r:.60}"
                ) from None
        else:
            found = {t: {m for m in modules if m == t or m.endswith(f".{t}")} for t in targets}
            missing = [target for target, some in found.items() if not some]
            if missing:
                raise self._fields.wrong(
                    "target_modules", f"names {', '.join(missing)}, and {_TENSORS} has no such"
                )
            chosen = set().union(*found.values())
        if other := sorted(set(modules) - chosen):
            raise self._fields.wrong(
                "target_modules", f"does not name {other[0]}, which {_TENSORS} has"
            )


def _shown(value: float) -> str:
    """A number in a message; of huge ones not all digits."""
    if isinstance(value, int) and abs(value) >= 2**63:
        return f"a number of {value.bit_length()} bits"
    return f"{value!r:.40}"


def _of_pattern(patterns: Mapping[str, Any], target: str, usual: Any) -> Any:
    """The value of the first pattern that ends a module's name, as PEFT reads them."""
    for pattern, value in patterns.items():
        try:
            if re.match(rf"(.*\.)?({pattern})$", target):
                return value
        except re.error as error:
            raise ModelError(f"{_CONFIG}: {pattern!r:.60} is no pattern: {error}") from None
    return usual


def _folder(path: Any) -> str:
    try:
        folder = os.fsdecode(path)
    except TypeError:
        raise kw.errors.ArgumentError(f"a path is a str or os.PathLike, got {path!r:.80}") from None
    for name in (_CONFIG, _TENSORS):
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


def _low_rank(
    where: str, target: str, pair: Mapping[str, Array], scale: float, module: Any, names: Names,
    config: Config,
) -> tuple[str, LowRank]:  # fmt: skip
    """The path of the layer that a module of the files is in, and what is added there."""
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
    down, up = pair["A"], pair["B"]
    expected = down.shape[0], rows.stop - rows.start
    if down.shape[1] != inputs or up.shape != (expected[1], expected[0]):
        raise ModelError(
            f"{where}: A is (rank, {inputs}) and B ({expected[1]}, rank), got {down.shape} and "
            f"{up.shape}"
        )
    if _turns_in_pairs(place, module, config):
        up = _in_pairs(up, config.head_dim)
    return path, LowRank(down, up, scale, rows, part)


def _turns_in_pairs(place: Place, module: Any, config: Config) -> bool:
    """Whether the rows of queries and keys lie as GGUF files have them, and adapters do not."""
    is_moved = config.flag("rope_interleaved", False) and not getattr(module, "interleaved", False)
    return is_moved and place.part in ("q", "k")


def _in_pairs(up: Array, head_dim: int) -> Array:
    """Rows i and i + head_dim / 2 of each head beside each other."""
    halves = up.reshape((-1, 2, head_dim // 2, up.shape[1]))
    return kw.stack([halves[:, 0], halves[:, 1]], axis=2).reshape(up.shape)
