"""The tensors of files where several make one weight of few bits."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import kernwright as kw
from kernwright._core import Array
from kernwright.llm._quantised.methods import Weight, find_weights
from kernwright.llm._tensors import SafeTensorsFiles, Tensors
from kernwright.nn._scaled_weight import ScaledWeight

__all__ = ["quantised"]


class _Quantised(Tensors):
    """The tensors of files where several make one weight: such a weight has the name that it would
    have as numbers, "....weight"."""

    def __init__(self, files: SafeTensorsFiles, weights: Mapping[str, Weight]) -> None:
        self.source, self._files, self._weights = files.source, files, dict(weights)
        used = {part for weight in self._weights.values() for part in weight.parts}
        self._plain = [name for name in files.names() if name not in used]

    def names(self) -> list[str]:
        return [*self._plain, *self._weights]

    def shape(self, name: str) -> tuple[int, ...]:
        return self._weights[name].shape if name in self._weights else self._files.shape(name)

    def dtype(self, name: str) -> str:
        return self._weights[name].format if name in self._weights else self._files.dtype(name)

    def nbytes(self, name: str) -> int:
        return sum(self._files.nbytes(part) for part in self._parts_of(name))

    def prefetch(self, groups: Sequence[Sequence[str]]) -> None:
        self._files.prefetch([
            [part for name in group for part in self._parts_of(name)] for group in groups
        ])  # fmt: skip

    def _parts_of(self, name: str) -> tuple[str, ...]:
        return self._weights[name].parts if name in self._weights else (name,)

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
            and any(each.parts[-1].endswith("g_idx") for each in found)
        ):
            return None  # each has an order of columns of its own
        if format == "nf4" and found[0].shape[1] % 64:
            return None  # blocks would go on in the next row
        if format == "fp8_block" and any(each.shape[0] % 128 for each in found[:-1]):
            return None  # tiles of rows would begin inside of others
        if (
            format == "nvfp4"
            and len(names) > 1
            and len({float(self._factor(each)) for each in found}) > 1
        ):
            return None  # each has a factor of its own
        blocks = self._blocks(names)
        if format in ("int8_rows", "fp8_rows"):
            return ScaledWeight(blocks[0], blocks[1])
        shape = (sum(each.shape[0] for each in found), found[0].shape[1])
        return kw.nn.quant.pack(blocks, format, shape=shape)

    def read_into(self, arrays: Mapping[str, Array]) -> None:
        self._files.read_into(arrays)

    def _blocks(self, names: Sequence[str]) -> tuple[Any, ...]:
        """What dequantize() and pack() take for weights one above the other."""
        weights = [self._weights[name] for name in names]
        columns = list(zip(*(self._parts(weight) for weight in weights), strict=True))
        axis = 1 if self._format(names[0]) in ("gptq", "gptq_v2", "awq") else 0
        joined = [
            each[0] if len(each) == 1 or each[0].ndim == 0 else kw.concat(list(each), axis=axis)
            for each in columns
        ]
        return tuple(joined)

    def _format(self, name: str) -> str:
        """The format that kw.nn.quant reads."""
        format = self._weights[name].format
        return {"int4_rows": "gptq_v2", "nvfp4_divided": "nvfp4"}.get(format, format)

    def _parts(self, weight: Weight) -> list[Any]:
        """The arrays of one weight, as dequantize() takes them."""
        read = self._files.read
        if weight.format == "int8_rows":
            return [read(weight.parts[0]), read(weight.parts[1]).astype("float32") / 127]
        if weight.format == "fp8_rows":
            scale = read(weight.parts[1]).astype("float32").reshape((-1,))
            return [read(weight.parts[0]), kw.broadcast_to(scale, (weight.shape[0],)).copy()]
        if weight.format == "mxfp4":
            codes, exponents = (read(part) for part in weight.parts)
            return [codes.reshape((*weight.shape[:-1], weight.shape[-1] // 2)), exponents]
        if weight.format.startswith("nvfp4"):
            return [*(read(part) for part in weight.parts[:2]), self._factor(weight)]
        if weight.format == "nf4":
            return self._nf4(weight)
        if weight.format == "int4_rows":
            return self._int4_rows(weight)
        return [read(part) for part in weight.parts]

    def _factor(self, weight: Weight) -> Array:
        """The scale that all numbers of an NVFP4 weight share."""
        factor = self._files.read(weight.parts[2]).astype("float32").reshape(())
        return 1 / factor if weight.format == "nvfp4_divided" else factor

    def _int4_rows(self, weight: Weight) -> list[Any]:
        """Rows of 4-bit codes, packed along a row, as gptq_v2 has them: transposed. Without zero
        points a code of 8 is 0."""
        names = weight.parts
        order = [self._files.read(names[-1])] if names[-1].endswith("g_idx") else []
        codes, scales, *zeros = (self._files.read(n) for n in names[: len(names) - len(order)])
        groups = scales.shape[1]
        eights = kw.full((groups, weight.shape[0] // 8), -0x77777778, "int32", device=codes.device)
        return [codes.T.copy(), zeros[0].T.copy() if zeros else eights, scales.T.copy(), *order]

    def _nf4(self, weight: Weight) -> list[Any]:
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


def quantised(files: SafeTensorsFiles, config: Any, source: str) -> Tensors:
    """The tensors of `files`, with weights put together as `quantization_config` says; see
    find_weights()."""
    if config is None:
        return files
    return _Quantised(files, find_weights(files, config, source))
