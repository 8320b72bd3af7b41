"""llm.load: a model from its files."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import kernwright as kw
from kernwright._core import Array
from kernwright._files.gguf import Gguf
from kernwright._files.opening import path_of
from kernwright.errors import ArgumentError, OutOfMemory
from kernwright.llm._adapters.adapters import require_limits
from kernwright.llm._adapters.planned import AdapterPlan
from kernwright.llm._caches import BYTES, CacheFormat
from kernwright.llm._config import Config
from kernwright.llm._draft import Draft, draft_of
from kernwright.llm._draft_model import loaded_draft, set_loader, with_model
from kernwright.llm._errors import ModelError, naming_damage
from kernwright.llm._fields import read_json
from kernwright.llm._fill import Filling, RandomFilling
from kernwright.llm._gguf.config import config_of
from kernwright.llm._gguf.names import gguf_names
from kernwright.llm._heads import drop_unread, head_bytes, head_config, predictor_bytes
from kernwright.llm._model import Model, cache_layers
from kernwright.llm._quantised.cache_scales import take_cache_scales
from kernwright.llm._quantised.methods import quantization_config
from kernwright.llm._quantised.tensors import quantised
from kernwright.llm._registry import class_of
from kernwright.llm._tensors import GgufTensors, JoinedLatent, Tensors, opened_folder
from kernwright.llm._text.files import has_tokenizer
from kernwright.llm._weights.memory import LEFT_TOKENS, Memory, budget_bytes, place, planned
from kernwright.llm.models._layers import RotaryTables, Wide
from kernwright.nn.quant import formats
from kernwright.nn.quant._formats import ONLY_READ
from kernwright.schedule._blocks import require_scheduler

__all__ = ["load"]

_DTYPES = ("float32", "float16", "bfloat16")
_VOCABULARY = "tokenizer.ggml.tokens"


def load(
    path: str | os.PathLike[str] | None = None, *, random: Any = None, dtype: str | None = None,
    quantize: str | None = None, device: Any = None, memory: str = "auto",
    budget: int | str | None = None, max_length: int | None = None, kv_dtype: str | None = None,
    max_adapters: int = 8, max_adapter_rank: int = 256,
    draft: str | os.PathLike[str] | Draft | None = None, scheduler: Any = None,
    graphs: bool = True,
) -> Model:  # fmt: skip
    """The model in a folder of Hugging Face's layout (config.json and safetensors files), or in a
    GGUF file.

    - random: in place of a path, a config (path of a config.json, mapping or llm.Config): a model
      of that shape with random weights.
    - dtype: "float32", "float16" or "bfloat16" of the weights; the config's without one.
    - max_length: the most positions of a sequence; those of the config without it.
    - kv_dtype: of the caches: the dtype of the weights, or "int8", "float8_e4m3fn", "float8_e5m2".
    - quantize: "fp8", "int8" or a format of kw.nn.quant.formats(), while loading; "gptq",
      "gptq_v2" and "awq" are read from files only. Weights of few bits in the files stay as they
      are.
    - memory: "device"; "stream": layers stay in page-locked memory of the host, and each step
      copies them; "experts": experts stay there; "auto": "device" where the weights fit, else
      "stream" with a RuntimeWarning. The model's `memory` tells what was chosen.
    - budget: bytes, or a text as "4GB", that weights may take on the device.
    - max_adapters, max_adapter_rank: bounds of Model.load_adapter().
    - draft: that of generate() and llm.Engine without one: see llm.Draft.
    - scheduler: a kw.schedule.Scheduler; each step is a guaranteed task of it.
    - graphs: False: each step calls the model, in place of a replay of what it recorded. Steps are
      slower, and a model of your own may print and read its arrays.

    Raises ModelError, which names the file, field or tensor, for an unknown architecture, for
    missing, unexpected or misshapen tensors, and for a budget that is too small, with the smallest
    one that works; a ModelError that is a StoreError, too, for damaged files.

    >>> from kernwright import llm
    >>> model = llm.load(random={
    ...     "architectures": ["LlamaForCausalLM"], "vocab_size": 64, "hidden_size": 32,
    ...     "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2,
    ...     "dtype": "float32",
    ... })
    >>> model.logits([1, 2, 3]).shape
    (3, 64)
    """
    limit = budget_bytes(memory, budget)
    require_scheduler(scheduler)
    if not isinstance(graphs, bool):
        raise ArgumentError(f"graphs is True or False, got {graphs!r:.60}")
    require_limits(max_adapters=max_adapters, max_adapter_rank=max_adapter_rank)
    chosen = draft_of(draft)
    with _opened(path, random, dtype, quantize, device, max_length, kv_dtype) as files:
        config, parameters = files.config, files.parameters
        where = files.device
        if chosen is not None:
            chosen = with_model(chosen, where)
        if parameters.dtype == "float16" and getattr(parameters.module, "wide_residuals", False):
            for _, module in parameters.module.named_modules():
                if isinstance(module, Wide):
                    module.widen("float16")
        try:
            used = place(parameters, memory, limit, where, files.left_bytes)
        except OutOfMemory as error:
            size = sum(parameters.nbytes(path) for path in parameters.first.values())
            raise OutOfMemory(
                f"{config.source}: the weights take {size:,} bytes, and there is no place for them "
                f'as memory="{memory}" wants: memory="stream" with budget= needs less on the '
                f"device, quantize= less in all ({error})"
            ) from None
        model = Model(
            config, parameters.module.eval(), memory=used, tokenizer_path=files.tokenizer_path,
            cache_dtype=kv_dtype, cache_scales=files.cache_scales, max_adapters=max_adapters,
            max_adapter_rank=max_adapter_rank,
        )  # fmt: skip
    if path is not None and os.path.isdir(path):
        model.folder = path_of(path)
    model.draft = loaded_draft(chosen, model)
    model.scheduler, model.graphs = scheduler, graphs
    return model


set_loader(load)


class Plan(NamedTuple):
    """The memory of a model on a device, by the headers of its files."""

    config: Config
    memory: Memory
    """Where load() would put the weights."""
    token_bytes: int
    """Of the keys and values of one token."""
    device: Any
    adapters: AdapterPlan
    draft: Plan | None = None
    """Of its draft model."""

    @property
    def device_bytes(self) -> int:
        """Of the weights on the device, with those of the draft model."""
        draft = 0 if self.draft is None else self.draft.device_bytes
        return self.memory.device_bytes + draft

    @property
    def cached_bytes(self) -> int:
        """Of the keys and values of one token, with those of the draft model."""
        return self.token_bytes + (0 if self.draft is None else self.draft.cached_bytes)


def plan(
    path: str | os.PathLike[str] | None = None, *, random: Any = None, dtype: str | None = None,
    quantize: str | None = None, device: Any = None, memory: str = "auto",
    budget: int | str | None = None, max_length: int | None = None, kv_dtype: str | None = None,
    max_adapters: int = 8, max_adapter_rank: int = 256,
) -> Plan:  # fmt: skip
    """The plan of load() with these arguments. No weights are read. Raises as load()."""
    limit = budget_bytes(memory, budget)
    require_limits(max_adapters=max_adapters, max_adapter_rank=max_adapter_rank)
    with _opened(path, random, dtype, quantize, device, max_length, kv_dtype) as files:
        where, token = files.device, files.token_bytes
        used = planned(files.parameters, memory, limit, where, files.left_bytes)
        parameters = files.parameters
        adapters = AdapterPlan(
            parameters.module, files.config, parameters.dtype, max_adapters, max_adapter_rank, where
        )
        return Plan(files.config, used, token, where, adapters)


def planned_draft(draft: Draft, model: Plan, folder: str | None) -> Plan:
    """The plan of a draft model for the model of another plan, or of its head; `folder` has the
    files of that model. Raises as load()."""
    if draft.model is None:
        config = model.config
        weights, token = predictor_bytes(config, folder, model.device)
    elif (found := head_config(draft.model)) is None:
        return plan(draft.model, device=model.device, memory="device")  # type: ignore[arg-type]
    else:
        config = found
        weights, token = head_bytes(config, model.config, model.device)
    used = Memory("device", weights, 0, 1, 0)
    return Plan(config, used, token, model.device, model.adapters)


class _Files(NamedTuple):
    """A model before its weights are read."""

    config: Config
    parameters: Any
    cache_format: CacheFormat
    tokenizer_path: str | None
    cache_scales: Mapping[int, tuple[Array, Array]]

    @property
    def device(self) -> Any:
        """Where its weights go."""
        return kw.empty((0,), device=self.parameters.device).device

    @property
    def token_bytes(self) -> int:
        """Of the keys and values of one token."""
        return self.cache_format.token_bytes(cache_layers(self.parameters.module, self.config))

    @property
    def left_bytes(self) -> int:
        """What memory="auto" leaves for keys and values."""
        return self.token_bytes * min(LEFT_TOKENS, self.config.max_length)


@contextlib.contextmanager
def _opened(
    path: Any, random: Any, dtype: str | None, quantize: str | None, device: Any,
    max_length: int | None, kv_dtype: str | None,
) -> Iterator[_Files]:  # fmt: skip
    """A model whose files are open, with all arguments checked."""
    if (path is None) == (random is None):
        raise ArgumentError("load() takes a path or random=config")
    check_dtype(dtype)
    made = ["int8", "fp8", *(each for each in formats() if each not in ONLY_READ)]
    if quantize is not None and quantize not in made:
        also = f"; {', '.join(ONLY_READ)} are read from files only"
        raise ArgumentError(f"quantize is one of {', '.join(made)}{also}, got {quantize!r:.60}")
    if kv_dtype is not None and kv_dtype not in (*_DTYPES, *BYTES):
        known = ", ".join((*_DTYPES, *BYTES))
        raise ArgumentError(f"kv_dtype is one of {known}, got {kv_dtype!r:.60}")
    whole = isinstance(max_length, int) and not isinstance(max_length, bool) and max_length > 0
    if max_length is not None and not whole:
        raise ArgumentError(f"max_length is a number of tokens, got {max_length!r:.60}")
    parameters: Filling | RandomFilling
    scales: Mapping[int, tuple[Array, Array]] = {}
    tokenizer_path = None
    with naming_damage(), contextlib.ExitStack() as stack:
        if path is None:
            config = _bounded(_config_of(random), max_length)
            module = _module_of(config, device)
            parameters = RandomFilling(
                module, dtype or config.dtype, device, quantize, config.source
            )
        else:
            name = existing_path(path)
            opened = _opened_gguf if os.path.isfile(name) else _opened_folder
            config, tensors, names, has_vocabulary, scales = opened(name, device, stack)
            config = _bounded(config, max_length)
            module = _module_of(config, device)
            parameters = Filling(module, tensors, names, dtype or config.dtype, device, quantize)
            tokenizer_path = name if has_vocabulary else None
        _require_cache(kv_dtype, parameters.dtype)
        format = CacheFormat(kv_dtype or parameters.dtype)
        yield _Files(config, parameters, format, tokenizer_path, scales)


_Opened = tuple[Config, Tensors, Any, bool, dict[int, tuple[Array, Array]]]


def _opened_gguf(name: str, device: Any, stack: contextlib.ExitStack) -> _Opened:
    """The config, the tensors, their names, whether there is a vocabulary, and no scales."""
    file = stack.enter_context(Gguf(name, device=device))
    config = config_of(file, name)
    names = gguf_names(config.architecture)
    return config, gguf_tensors(config, name, file), names, _VOCABULARY in file.metadata, {}


def _opened_folder(name: str, device: Any, stack: contextlib.ExitStack) -> _Opened:
    """The config, the tensors, their names, whether there is a vocabulary, and scales of caches."""
    config = with_generation_config(Config.from_file(os.path.join(name, "config.json")), name)
    files = stack.enter_context(opened_folder(name, device))
    architecture = class_of(config.architecture, config.source)
    drop_unread(files, architecture)
    scales = take_cache_scales(files)
    few_bits = quantization_config(config.fields, name)
    tensors = quantised(files, few_bits, config.source)
    return config, tensors, architecture.names, has_tokenizer(name), scales


def _module_of(config: Config, device: Any) -> Any:
    """A network without numbers. Raises ModelError for a config that makes no sense."""
    module = class_of(config.architecture, config.source)(config)
    for value in vars(module).values():
        if isinstance(value, RotaryTables):
            value.check(config.source, device)
    return module


def _require_cache(kv_dtype: str | None, dtype: str) -> None:
    """Raises ArgumentError for caches that queries of a dtype cannot attend to."""
    if kv_dtype in (None, dtype) or (kv_dtype in BYTES and dtype != "float32"):
        return
    others = "" if dtype == "float32" else f" or one of {', '.join(BYTES)}"
    raise ArgumentError(f"with weights of {dtype} kv_dtype is the same{others}, got {kv_dtype}")


def gguf_tensors(config: Config, source: str, file: Gguf) -> GgufTensors:
    """The arrays of a file as a model of this config takes them."""
    latent = config.architecture == "DeepseekV2ForCausalLM"
    return (JoinedLatent if latent else GgufTensors)(source, file)


def check_dtype(dtype: Any) -> None:
    """Raises ArgumentError for what is no dtype of weights."""
    if dtype is not None and dtype not in _DTYPES:
        raise ArgumentError(f"dtype is one of {', '.join(_DTYPES)}, got {dtype!r:.60}")


def with_generation_config(config: Config, folder: str) -> Config:
    """With the tokens that end a text by generation_config.json, too."""
    path = os.path.join(folder, "generation_config.json")
    if not os.path.exists(path):
        return config
    return config.with_ends(read_json(Path(path)).values, path)


def _bounded(config: Config, max_length: int | None) -> Config:
    if max_length is None:
        return config
    return dataclasses.replace(config, max_length=min(max_length, config.most_positions()))


def existing_path(path: Any) -> str:
    """The path of a folder with a config.json, or of a GGUF file. Raises ModelError."""
    name = path_of(path)
    if not name:
        raise ModelError('the path of the model is empty: ""')
    if not os.path.exists(name):
        raise ModelError(
            f"{name} does not exist; a model is a folder or a .gguf file on this machine, and "
            "nothing is downloaded"
        )
    if os.path.isdir(name):
        if not os.path.exists(os.path.join(name, "config.json")):
            raise ModelError(f"{name} has no config.json; it has {_files_of(name)}")
    elif not name.endswith(".gguf"):
        raise ModelError(
            f"{name} is no folder; a model is a folder with a config.json in it, or a .gguf file"
        )
    return name


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
