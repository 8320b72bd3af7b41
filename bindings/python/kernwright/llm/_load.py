"""llm.load: a model from its files."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

from kernwright.errors import ArgumentError
from kernwright.llm._config import Config
from kernwright.llm._errors import ModelError
from kernwright.llm._fill import fill, fill_random
from kernwright.llm._model import Model
from kernwright.llm._registry import class_of
from kernwright.llm._tensors import opened

__all__ = ["load"]

_DTYPES = ("float32", "float16", "bfloat16")


def load(
    path: str | os.PathLike[str] | None = None, *, random: Any = None, dtype: str | None = None,
    device: Any = None, max_length: int | None = None,
) -> Model:  # fmt: skip
    """The model in a folder of Hugging Face's layout: config.json and safetensors files.

    `random`, in place of a path, is a config (a path of a config.json, its fields as a mapping, or
    an llm.Config) and makes a model of that shape with random weights. `dtype`, "float32",
    "float16" or "bfloat16", is that of the weights, the config's without one. `max_length` bounds
    the positions that a sequence may have; without it they are those of the config.

    Raises ModelError, which names the file, field or tensor, for an unknown architecture, for
    missing, unexpected or misshapen tensors; StoreError for damaged files.

    >>> from kernwright import llm
    >>> model = llm.load(random={
    ...     "architectures": ["LlamaForCausalLM"], "vocab_size": 64, "hidden_size": 32,
    ...     "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2,
    ...     "dtype": "float32",
    ... })
    >>> model.logits([1, 2, 3]).shape
    (3, 64)
    """
    if (path is None) == (random is None):
        raise ArgumentError("load() takes a path or random=config")
    config = _config_of(random) if path is None else _config_in(path)
    if dtype is not None and dtype not in _DTYPES:
        raise ArgumentError(f"dtype is one of {', '.join(_DTYPES)}, got {dtype!r:.60}")
    if max_length is not None:
        if isinstance(max_length, bool) or not isinstance(max_length, int) or max_length < 1:
            raise ArgumentError(f"max_length is a number of tokens, got {max_length!r:.60}")
        config = dataclasses.replace(config, max_length=min(max_length, config.max_length))
    module = class_of(config.architecture, config.source)(config)
    if path is None:
        fill_random(module, dtype or config.dtype, device)
    else:
        with opened(os.fsdecode(path)) as tensors:
            fill(module, tensors, dtype or config.dtype, device)
    return Model(config, module.eval())


def _config_in(path: Any) -> Config:
    try:
        folder = os.fsdecode(path)
    except TypeError:
        raise ArgumentError(f"a path is a str or os.PathLike, got {path!r:.80}") from None
    if not os.path.exists(folder):
        raise ModelError(f"{folder} does not exist")
    if not os.path.isdir(folder):
        raise ModelError(f"{folder} is no folder; a model is one, with config.json in it")
    name = os.path.join(folder, "config.json")
    if not os.path.exists(name):
        raise ModelError(f"{folder} has no config.json; it has {_files_of(folder)}")
    return Config.from_file(name)


def _config_of(random: Any) -> Config:
    if isinstance(random, Config):
        return random
    if isinstance(random, Mapping):
        return Config.from_fields(random)
    if isinstance(random, (str, os.PathLike)):
        name = os.fsdecode(random)
        return Config.from_file(os.path.join(name, "config.json") if os.path.isdir(name) else name)
    raise ArgumentError(f"random is a config, its fields or its path, got {random!r:.60}")


def _files_of(folder: str) -> str:
    names = sorted(os.listdir(folder))
    return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "") if names else "no file"
