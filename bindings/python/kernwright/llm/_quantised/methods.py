"""The tensors of a weight of few bits by `quantization_config`, method by method."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from kernwright.llm._errors import ModelError
from kernwright.llm._fields import parse_json, read_json
from kernwright.llm._tensors import SafeTensorsFiles

__all__ = ["Weight", "find_weights", "quantization_config"]


class Weight(NamedTuple):
    """A quantised weight: its format, its shape and its tensors."""

    format: str
    shape: tuple[int, ...]  # (n, k), of experts (experts, n, k)
    parts: tuple[str, ...]


# Endings of tensors: of the codes, and of tensors beside them.
_GPTQ = ("qweight", "qzeros", "scales", "g_idx")
_NF4_STATE = ".quant_state.bitsandbytes__"
_MODELOPT = ("FP8", "NVFP4", "MIXED_PRECISION")


class _Search:
    """Weights, found one by one; a wrong one raises ModelError."""

    def __init__(self, files: SafeTensorsFiles, config: Mapping[str, Any], source: str) -> None:
        self.files, self.config, self.source = files, config, source
        self.known = set(files.names())
        self.made: dict[str, Weight] = {}

    def beside(self, ending: str) -> list[str]:
        """The names with this ending, without it."""
        return sorted(name[: -len(ending)] for name in self.known if name.endswith(ending))

    def shape(self, name: str, axes: int) -> tuple[int, ...]:
        """The extents of a tensor, as many as expected."""
        if name not in self.known:
            raise self.wrong(f"the tensor {name} is missing")
        shape = self.files.shape(name)
        if len(shape) != axes:
            raise self.wrong(f"{name} has {axes} axes, got the shape {shape}")
        return shape

    def add(self, name: str, format: str, shape: Sequence[int], parts: Sequence[str]) -> None:
        """A weight. All its parts must be there."""
        missing = [part for part in parts if part not in self.known]
        if missing:
            raise self.wrong(f"{name} lacks {', '.join(missing)}")
        self.made[name] = Weight(format, tuple(shape), tuple(parts))

    def drop(self, *names: str) -> None:
        """Tensors that change nothing here."""
        for name in names:
            self.files.files.pop(name, None)

    def wrong(self, what: str) -> ModelError:
        return ModelError(f"{self.source}: {what}")


def quantization_config(fields: Mapping[str, Any], folder: str) -> Any:
    """`quantization_config` of a folder whose config.json has these fields, or what
    hf_quant_config.json of ModelOpt says in its place; None without both. Raises ModelError."""
    found = fields.get("quantization_config")
    path = os.path.join(folder, "hf_quant_config.json")
    if found is not None or not os.path.exists(path):
        return found
    return {"quant_method": "modelopt", **read_json(Path(path)).object("quantization").values}


def find_weights(files: SafeTensorsFiles, config: Any, source: str) -> dict[str, Weight]:
    """The weights of few bits, by their names as numbers, "....weight".

    Known methods: "fp8" (tiles of 128 x 128, or a scale a tensor or a row), "gptq", "awq",
    "bitsandbytes" (NF4 and int8), "compressed-tensors" (int4, fp8 and NVFP4), "modelopt" (fp8 and
    NVFP4), "mxfp4" (experts). What only activations would use is taken out of `files`. Raises
    ModelError for other methods, which it names, and for weights of which something is missing.
    """
    if not isinstance(config, Mapping):
        raise ModelError(f"{source}: quantization_config has fields, got {config!r:.60}")
    method = config.get("quant_method")
    if not isinstance(method, str) or method not in _METHODS:
        raise ModelError(
            f"{source}: quant_method {method!r:.60} is unknown; known are {', '.join(_METHODS)}"
        )
    search = _Search(files, config, source)
    _METHODS[method](search)
    return search.made


def _fp8(search: _Search) -> None:
    _require_tiles(search)
    for base in search.beside(".weight"):
        name = f"{base}.weight"
        search.drop(f"{base}.input_scale")
        if not search.files.dtype(name).startswith("float8"):
            continue
        shape = search.shape(name, 2)
        tile, row = f"{base}.weight_scale_inv", f"{base}.weight_scale"
        if tile not in search.known and row not in search.known:
            raise search.wrong(f"{name} is float8 and has neither {tile} nor {row}")
        if tile not in search.known and len(search.files.shape(row)) == 2:
            counts = tuple(-(-each // 128) for each in shape)
            if search.files.shape(row) == counts != (shape[0], 1):
                tile = row  # a scale of each tile under the name of one for each row
        if tile in search.known:
            search.add(name, "fp8_block", shape, (name, tile))
        else:
            search.add(name, "fp8_rows", shape, (name, row))


def _require_tiles(search: _Search) -> None:
    """Tiles of fp8 are 128 x 128: `weight_block_size`, and `block_structure` of
    compressed-tensors."""
    found = [search.config.get("weight_block_size")]
    groups = search.config.get("config_groups")
    for group in groups.values() if isinstance(groups, Mapping) else ():
        weights = group.get("weights") if isinstance(group, Mapping) else None
        if isinstance(weights, Mapping) and weights.get("strategy") == "block":
            found.append(weights.get("block_structure"))
    for size in found:
        if size is not None and size not in ([128, 128], "128x128"):
            raise search.wrong(f"tiles of fp8 are 128 x 128, got {size!r:.60}")


def _gptq(search: _Search) -> None:
    _require_bits(search)
    format = "gptq_v2" if search.config.get("checkpoint_format") == "gptq_v2" else "gptq"
    for base in search.beside(".qweight"):
        rows, columns = search.shape(f"{base}.qweight", 2)
        parts = [f"{base}.{each}" for each in _GPTQ]
        if search.config.get("desc_act") and parts[3] in search.known:
            search.add(f"{base}.weight", format, (columns, 8 * rows), parts)
        else:
            search.drop(parts[3])
            search.add(f"{base}.weight", format, (columns, 8 * rows), parts[:3])


def _awq(search: _Search) -> None:
    _require_bits(search)
    for base in search.beside(".qweight"):
        rows, columns = search.shape(f"{base}.qweight", 2)
        parts = [f"{base}.{each}" for each in _GPTQ[:3]]
        search.add(f"{base}.weight", "awq", (8 * columns, rows), parts)


def _require_bits(search: _Search) -> None:
    bits = search.config.get("bits", search.config.get("w_bit", 4))
    if bits != 4:
        raise search.wrong(f"weights of {bits!r:.20} bits are not read; 4 bits are")


def _bitsandbytes(search: _Search) -> None:
    for base in search.beside(".SCB"):
        name = f"{base}.weight"
        search.add(name, "int8_rows", search.shape(name, 2), (name, f"{base}.SCB"))
        search.drop(f"{base}.weight_format")
    for name in sorted(search.known):
        weight, state, kind = name.partition(_NF4_STATE)
        if not state:
            continue
        fields = parse_json(name, bytes(search.files.read(name).numpy()).decode(errors="replace"))
        if kind != "nf4" or fields.get("blocksize", int, 64) != 64:
            raise search.wrong(f"{weight} is {kind} in blocks of {fields.values.get('blocksize')}")
        shape = fields.need("shape", list)
        if len(shape) != 2 or not all(type(each) is int and each >= 0 for each in shape):
            raise search.wrong(f"{name}: a shape is two whole numbers, got {shape!r:.60}")
        parts = [weight, name, f"{weight}.absmax"]
        if f"{weight}.nested_absmax" in search.known:
            fields.need("nested_blocksize", int)
            fields.need("nested_offset", float)
            parts += [f"{weight}.nested_absmax", f"{weight}.nested_quant_map"]
        search.add(weight, "nf4", shape, parts)
        search.drop(f"{weight}.quant_map")


def _compressed(search: _Search) -> None:
    format = search.config.get("format")
    finders = {
        "float-quantized": _fp8, "naive-quantized": _fp8, "pack-quantized": _int4,
        "nvfp4-pack-quantized": _nvfp4,
    }  # fmt: skip
    if not isinstance(format, str) or format not in finders:
        raise search.wrong(
            f"compressed-tensors of the format {format!r:.60} are unknown; known are "
            f"{', '.join(finders)}"
        )
    finders[format](search)


def _int4(search: _Search) -> None:
    for base in search.beside(".weight_packed"):
        rows, columns = search.shape(f"{base}.weight_packed", 2)
        parts = [f"{base}.weight_packed", f"{base}.weight_scale"]
        if f"{base}.weight_zero_point" in search.known:
            parts.append(f"{base}.weight_zero_point")
        if f"{base}.weight_g_idx" in search.known:  # `actorder`
            parts.append(f"{base}.weight_g_idx")
        search.add(f"{base}.weight", "int4_rows", (rows, 8 * columns), parts)
        search.drop(f"{base}.weight_shape")


def _nvfp4(search: _Search) -> None:
    """The scale of all numbers is a divisor."""
    for base in search.beside(".weight_packed"):
        rows, columns = search.shape(f"{base}.weight_packed", 2)
        parts = [f"{base}.weight_{each}" for each in ("packed", "scale", "global_scale")]
        search.add(f"{base}.weight", "nvfp4_divided", (rows, 2 * columns), parts)
        search.drop(f"{base}.input_global_scale")


def _modelopt(search: _Search) -> None:
    """The tensors of a weight tell whether it is NVFP4 or fp8."""
    algorithm = search.config.get("quant_algo")
    if algorithm not in _MODELOPT:
        raise search.wrong(
            f"quant_algo {algorithm!r:.60} is unknown; known are {', '.join(_MODELOPT)}"
        )
    for base in search.beside(".weight_scale_2"):
        rows, columns = search.shape(f"{base}.weight", 2)
        parts = [f"{base}.{each}" for each in ("weight", "weight_scale", "weight_scale_2")]
        search.add(f"{base}.weight", "nvfp4", (rows, 2 * columns), parts)
    _fp8(search)


def _mxfp4(search: _Search) -> None:
    """Blocks of 32 codes in 16 bytes: (experts, n, k / 32, 16)."""
    for base in search.beside("_blocks"):
        name = f"{base}_blocks"
        experts, rows, groups, width = search.shape(name, 4)
        if width != 16:
            raise search.wrong(f"{name} has blocks of 16 bytes, got {width}")
        search.add(name, "mxfp4", (experts, rows, 32 * groups), (name, f"{base}_scales"))


_METHODS: dict[str, Callable[[_Search], None]] = {
    "fp8": _fp8, "fbgemm_fp8": _fp8, "gptq": _gptq, "awq": _awq, "bitsandbytes": _bitsandbytes,
    "compressed-tensors": _compressed, "modelopt": _modelopt, "mxfp4": _mxfp4,
}  # fmt: skip
