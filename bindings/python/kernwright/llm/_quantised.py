"""Weights of few bits in files of Hugging Face's layout: what `quantization_config` says."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import kernwright as kw
from kernwright._core import Array
from kernwright.llm._errors import ModelError
from kernwright.llm._tensors import SafeTensorsFiles, Tensors
from kernwright.nn._modules.linear import ScaledWeight

__all__ = ["quantised"]


class _Weight(NamedTuple):
    """A quantised weight: its format, shape, and the tensors that it is made of."""

    format: str
    shape: tuple[int, ...]  # (n, k)
    parts: tuple[str, ...]


# Endings of tensors: of the codes, and of those that may stand beside them.
_GPTQ = ("qweight", "qzeros", "scales", "g_idx")
_NF4_STATE = ".quant_state.bitsandbytes__"


class _Quantised(Tensors):
    """The tensors of files where several make one weight: such a weight has the name that it would
    have as numbers, "....weight"."""

    def __init__(self, files: SafeTensorsFiles, weights: Mapping[str, _Weight]) -> None:
        self.source, self._files, self._weights = files.source, files, dict(weights)
        used = {part for weight in self._weights.values() for part in weight.parts}
        self._plain = [name for name in files.names() if name not in used]

    def names(self) -> list[str]:
        return [*self._plain, *self._weights]

    def shape(self, name: str) -> tuple[int, ...]:
        return self._weights[name].shape if name in self._weights else self._files.shape(name)

    def dtype(self, name: str) -> str:
        return self._weights[name].format if name in self._weights else self._files.dtype(name)

    def numbers(self, name: str, dtype: str) -> Array:
        if name not in self._weights:
            return self._files.numbers(name, dtype)
        format, shape = self._format(name), self._weights[name].shape
        blocks = self._blocks([name])
        if format in ("int8_rows", "fp8_rows"):
            wide: Array = blocks[0].astype("float32") * blocks[1][:, None]
            return wide.astype(dtype)
        made: Array = kw.nn.quant.dequantize(blocks, format, dtype=dtype)
        if format in ("gptq", "gptq_v2", "awq"):
            made = made.T
        return made.reshape(shape)

    def packed(self, names: Sequence[str], dtype: str) -> Any:
        if any(name not in self._weights for name in names):
            return None
        found = [self._weights[name] for name in names]
        if any(each.format != found[0].format for each in found):
            return None
        format = self._format(names[0])
        if (
            format.startswith("gptq")
            and len(names) > 1
            and any(len(each.parts) == 4 for each in found)
        ):
            return None  # each has an order of columns of its own
        blocks = self._blocks(names)
        if format in ("int8_rows", "fp8_rows"):
            return ScaledWeight(blocks[0], blocks[1])
        shape = (sum(each.shape[0] for each in found), found[0].shape[1])
        if format == "nf4" and found[0].shape[1] % 64:
            return None  # blocks would go on in the next row
        if format == "fp8_block" and any(each.shape[0] % 128 for each in found[:-1]):
            return None  # tiles of rows would begin inside of others
        return kw.nn.quant.pack(blocks, format, shape=shape)

    def read_into(self, arrays: Mapping[str, Array]) -> None:
        self._files.read_into(arrays)

    def _blocks(self, names: Sequence[str]) -> tuple[Any, ...]:
        """What dequantize() and pack() take for weights one above the other."""
        weights = [self._weights[name] for name in names]
        columns = list(zip(*(self._parts(weight) for weight in weights), strict=True))
        axis = 1 if self._format(names[0]) in ("gptq", "gptq_v2", "awq") else 0
        joined = [
            each[0] if len(each) == 1 or each[0] is None else kw.concat(list(each), axis=axis)
            for each in columns
        ]
        return tuple(joined)

    def _format(self, name: str) -> str:
        """The format that kw.nn.quant reads."""
        format = self._weights[name].format
        return "gptq_v2" if format == "int4_rows" else format

    def _parts(self, weight: _Weight) -> list[Any]:
        """The arrays of one weight, as dequantize() takes them."""
        read = self._files.read
        if weight.format == "int8_rows":
            return [read(weight.parts[0]), read(weight.parts[1]).astype("float32") / 127]
        if weight.format == "fp8_rows":
            scale = read(weight.parts[1]).astype("float32").reshape((-1,))
            return [read(weight.parts[0]), kw.broadcast_to(scale, (weight.shape[0],)).copy()]
        if weight.format == "nf4":
            return self._nf4(weight)
        if weight.format == "int4_rows":
            return self._int4_rows(weight)
        return [read(part) for part in weight.parts]

    def _int4_rows(self, weight: _Weight) -> list[Any]:
        """Rows of 4-bit codes, packed along a row, as gptq_v2 has them: transposed. Without zero
        points a code of 8 is 0."""
        codes, scales, *zeros = (self._files.read(part) for part in weight.parts)
        groups = scales.shape[1]
        eights = kw.full((groups, weight.shape[0] // 8), -0x77777778, "int32", device=codes.device)
        return [codes.T.copy(), zeros[0].T.copy() if zeros else eights, scales.T.copy()]

    def _nf4(self, weight: _Weight) -> list[Any]:
        """(codes, absmax) of bitsandbytes, whose absmax may be 8-bit codes themselves."""
        codes, state, absmax, *nested = weight.parts
        fields = json.loads(bytes(self._files.read(state).numpy()).decode())
        largest = self._files.read(absmax)
        if nested:
            scales, table = (self._files.read(each) for each in nested)
            wide = kw.take(table, largest.astype("int32"), axis=0)
            size = int(fields["nested_blocksize"])
            steps = kw.repeat(scales, size, axis=0)[: wide.shape[0]]
            largest = wide * steps + float(fields["nested_offset"])
        return [self._files.read(codes).reshape((-1,)), largest]


def quantised(files: SafeTensorsFiles, config: Mapping[str, Any] | None, source: str) -> Tensors:
    """The tensors of `files`, with weights put together as `quantization_config` says.

    Known methods: "fp8" (tiles of 128 x 128, or a scale a tensor or a row), "gptq", "awq",
    "bitsandbytes" (NF4 and int8), "compressed-tensors" (int4 and fp8). Raises ModelError for
    others, which it names.
    """
    if config is None:
        return files
    method = config.get("quant_method")
    finders = {
        "fp8": _fp8, "fbgemm_fp8": _fp8, "gptq": _gptq, "awq": _awq,
        "bitsandbytes": _bitsandbytes, "compressed-tensors": _compressed,
    }  # fmt: skip
    if method not in finders:
        raise ModelError(
            f"{source}: quant_method {method!r:.60} is unknown; known are {', '.join(finders)}"
        )
    return _Quantised(files, finders[method](files, config, source))


def _beside(files: SafeTensorsFiles, ending: str) -> list[str]:
    """What stands before `ending` in the names that have it."""
    return [name[: -len(ending)] for name in files.names() if name.endswith(ending)]


def _fp8(files: SafeTensorsFiles, config: Mapping[str, Any], source: str) -> dict[str, _Weight]:
    made = {}
    known = set(files.names())
    for base in _beside(files, ".weight"):
        name = f"{base}.weight"
        if not files.dtype(name).startswith("float8"):
            continue
        tile, row = f"{base}.weight_scale_inv", f"{base}.weight_scale"
        if tile in known:
            made[name] = _Weight("fp8_block", files.shape(name), (name, tile))
        elif row in known:
            made[name] = _Weight("fp8_rows", files.shape(name), (name, row))
        else:
            raise ModelError(f"{source}: {name} is float8 and has neither {tile} nor {row}")
    scales = {f"{base}.{each}" for base in _beside(files, ".weight") for each in ("input_scale",)}
    for name in scales & known:
        files.files.pop(name)
    return made


def _gptq(files: SafeTensorsFiles, config: Mapping[str, Any], source: str) -> dict[str, _Weight]:
    _require_bits(config, source)
    format = "gptq_v2" if config.get("checkpoint_format") == "gptq_v2" else "gptq"
    known = set(files.names())
    made = {}
    for base in _beside(files, ".qweight"):
        rows, columns = files.shape(f"{base}.qweight")
        parts = [f"{base}.{each}" for each in _GPTQ]
        if config.get("desc_act"):
            parts = [part for part in parts if part in known]
        else:
            parts = parts[:3]
            files.files.pop(f"{base}.g_idx", None)
        made[f"{base}.weight"] = _Weight(format, (columns, 8 * rows), tuple(parts))
    return made


def _awq(files: SafeTensorsFiles, config: Mapping[str, Any], source: str) -> dict[str, _Weight]:
    _require_bits(config, source)
    made = {}
    for base in _beside(files, ".qweight"):
        rows, columns = files.shape(f"{base}.qweight")
        parts = tuple(f"{base}.{each}" for each in _GPTQ[:3])
        made[f"{base}.weight"] = _Weight("awq", (8 * columns, rows), parts)
    return made


def _require_bits(config: Mapping[str, Any], source: str) -> None:
    bits = config.get("bits", config.get("w_bit", 4))
    if bits != 4:
        raise ModelError(f"{source}: weights of {bits!r:.20} bits are not read; 4 bits are")


def _bitsandbytes(
    files: SafeTensorsFiles, config: Mapping[str, Any], source: str
) -> dict[str, _Weight]:
    made: dict[str, _Weight] = {}
    known = set(files.names())
    for base in _beside(files, ".SCB"):
        name = f"{base}.weight"
        made[name] = _Weight("int8_rows", files.shape(name), (name, f"{base}.SCB"))
        files.files.pop(f"{base}.weight_format", None)
    for name in sorted(known):
        at = name.find(_NF4_STATE)
        if at < 0:
            continue
        weight, kind = name[:at], name[at + len(_NF4_STATE) :]
        fields = json.loads(bytes(files.read(name).numpy()).decode())
        if kind != "nf4" or int(fields.get("blocksize", 64)) != 64:
            raise ModelError(f"{source}: {weight} is {kind} in blocks of {fields.get('blocksize')}")
        parts = [weight, name, f"{weight}.absmax"]
        if f"{weight}.nested_absmax" in known:
            parts += [f"{weight}.nested_absmax", f"{weight}.nested_quant_map"]
        made[weight] = _Weight("nf4", tuple(fields["shape"]), tuple(parts))
        files.files.pop(f"{weight}.quant_map", None)
    return made


def _compressed(
    files: SafeTensorsFiles, config: Mapping[str, Any], source: str
) -> dict[str, _Weight]:
    format = config.get("format")
    if format == "float-quantized":
        return _fp8(files, config, source)
    if format != "pack-quantized":
        raise ModelError(
            f"{source}: compressed-tensors of the format {format!r:.60} are unknown; known are "
            "float-quantized and pack-quantized"
        )
    made = {}
    known = set(files.names())
    for base in _beside(files, ".weight_packed"):
        rows, columns = files.shape(f"{base}.weight_packed")
        parts = [f"{base}.weight_packed", f"{base}.weight_scale"]
        if f"{base}.weight_zero_point" in known:
            parts.append(f"{base}.weight_zero_point")
        made[f"{base}.weight"] = _Weight("int4_rows", (rows, 8 * columns), tuple(parts))
        files.files.pop(f"{base}.weight_shape", None)
    return made
