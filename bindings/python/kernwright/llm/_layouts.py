"""How files keep weights of few bits: the tensors of each, and what config.json says of them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import kernwright as kw
from kernwright import _core
from kernwright._core import Array

__all__ = ["FILE_TYPES", "LAYOUTS", "Layout"]

_NF4_BLOCK = 64

# Formats of GGUF that are written: the number of each in `general.file_type`, numbers of a block.
FILE_TYPES = {name: (row[3], row[0]) for name, row in _core._gguf_formats().items()}


class Layout(NamedTuple):
    """A format in folders of Hugging Face's layout."""

    block: int
    """A row has a whole number of blocks of so many numbers."""
    tensors: Callable[[str, Array, str], dict[str, Array]]
    """Makes the tensors of a weight (n, k), called with the name of its layer, the weight and the
    dtype of the model."""
    config: Callable[[Sequence[str], str], dict[str, Any]]
    """Makes `quantization_config`, called with the layers that keep their numbers and the dtype of
    the model."""


def _fp8(base: str, weight: Array, dtype: str) -> dict[str, Array]:
    codes, scale = kw.nn.quantize_rows(weight, "float8_e4m3fn")
    return {f"{base}.weight": codes, f"{base}.weight_scale": scale.reshape((-1, 1))}


def _int8(base: str, weight: Array, dtype: str) -> dict[str, Array]:
    """bitsandbytes keeps the largest magnitude of each row, 127 times the scale."""
    codes, _ = kw.nn.quantize_rows(weight, "int8")
    return {f"{base}.weight": codes, f"{base}.SCB": kw.max(kw.abs(weight.astype("float32")), 1)}


def _nf4(base: str, weight: Array, dtype: str) -> dict[str, Array]:
    codes, absmax = kw.nn.quant.quantize(weight, "nf4")
    state = {
        "quant_type": "nf4", "blocksize": _NF4_BLOCK, "dtype": dtype, "shape": list(weight.shape),
    }  # fmt: skip
    text = np.frombuffer(json.dumps(state).encode(), np.uint8)
    pairs = np.array([16 * even + even + 1 for even in range(0, 16, 2)], np.uint8)
    one = kw.ones(1, device=weight.device)
    table = kw.nn.quant.dequantize(
        (kw.asarray(pairs, device=weight.device), one), "nf4", shape=(16,)
    )
    return {
        f"{base}.weight": codes.reshape((-1, 1)), f"{base}.weight.absmax": absmax,
        f"{base}.weight.quant_map": table,
        f"{base}.weight.quant_state.bitsandbytes__nf4": kw.asarray(text, device=weight.device),
    }  # fmt: skip


def _fp8_config(kept: Sequence[str], dtype: str) -> dict[str, Any]:
    weights = {
        "num_bits": 8, "type": "float", "strategy": "channel", "symmetric": True, "dynamic": False,
    }  # fmt: skip
    group = {
        "targets": ["Linear"], "weights": weights, "input_activations": None,
        "output_activations": None,
    }  # fmt: skip
    return {
        "quant_method": "compressed-tensors", "format": "float-quantized",
        "quantization_status": "compressed", "config_groups": {"group_0": group},
        "ignore": [
            rf"re:{re.escape(each)}\..*" if each.endswith(".experts") else each for each in kept
        ],
    }  # fmt: skip


def _int8_config(kept: Sequence[str], dtype: str) -> dict[str, Any]:
    return {
        "quant_method": "bitsandbytes", "load_in_8bit": True, "load_in_4bit": False,
        "llm_int8_threshold": 6.0, "llm_int8_skip_modules": list(kept),
    }  # fmt: skip


def _nf4_config(kept: Sequence[str], dtype: str) -> dict[str, Any]:
    return {
        "quant_method": "bitsandbytes", "load_in_8bit": False, "load_in_4bit": True,
        "bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": False,
        "bnb_4bit_compute_dtype": dtype, "bnb_4bit_quant_storage": "uint8",
        "llm_int8_skip_modules": list(kept),
    }  # fmt: skip


LAYOUTS = {
    "fp8": Layout(1, _fp8, _fp8_config),
    "int8": Layout(1, _int8, _int8_config),
    "nf4": Layout(_NF4_BLOCK, _nf4, _nf4_config),
}
