"""Heads: layers for drafts from hidden states, in files of their own or of the model."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import kernwright as kw
from kernwright._core import Array
from kernwright.llm._caches import CacheFormat
from kernwright.llm._config import Config
from kernwright.llm._draft import DraftWriter
from kernwright.llm._errors import ModelError
from kernwright.llm._fields import read_json
from kernwright.llm._fill import Filling, RandomFilling, itemsize
from kernwright.llm._quantised.methods import quantization_config
from kernwright.llm._quantised.tensors import quantised
from kernwright.llm._registry import class_of
from kernwright.llm._tensors import SafeTensorsFiles, opened_folder
from kernwright.llm._weights.memory import place
from kernwright.llm.models.eagle3 import Eagle3, feature_layers
from kernwright.llm.models.mimo import MiMoPredictor

if TYPE_CHECKING:
    from kernwright.llm._model import Model

__all__ = [
    "Head",
    "drop_unread",
    "head_bytes",
    "head_config",
    "load_head",
    "load_predictor",
    "predictor_bytes",
]


class Head(DraftWriter):
    """A head of a model: its layer, the tokens of its logits, and the layers of the model with its
    input: `states`, the hidden states in front of them."""

    def __init__(
        self, config: Config, module: Eagle3 | MiMoPredictor, tokens: Array | None, model: Model,
        states: tuple[int, ...],
    ) -> None:  # fmt: skip
        self.config, self.module, self.device = config, module, model.device
        self.tokens = tokens
        """(draft_vocab_size,) int32: the token of each logit; None where they are the same."""
        self.states = states
        self.width = len(states) * model.config.hidden_size
        """Numbers of a token's hidden states."""
        self.dtype: str = module.norm.weight.dtype.name

    def token_of(self, sampled: Array) -> Array:
        """The tokens of numbers of logits, (rows,) int32."""
        return sampled if self.tokens is None else kw.take(self.tokens, sampled, axis=0)

    def __repr__(self) -> str:
        return f"<llm head {self.config.source}>"


def head_config(path: Any) -> Config | None:
    """The config of a head in a folder; None for models and other folders."""
    name = os.path.join(os.fspath(path), "config.json") if isinstance(path, (str, Path)) else ""
    if not os.path.isfile(name):
        return None
    fields = read_json(Path(name)).values
    inner = fields.get("transformer_layer_config")
    if isinstance(inner, dict):
        fields = {**inner, **fields}
    names = fields.get("architectures")
    has_name = isinstance(names, list) and any("Eagle3" in str(each) for each in names)
    if not has_name and "draft_vocab_size" not in fields:
        return None
    return Config.from_fields(fields, source=name)


def load_head(config: Config, model: Model) -> Head:
    """The head in the folder of a config, for a model. Raises ModelError for files that do not fit
    each other or the model."""
    ours, theirs = model.config, config
    if theirs.vocab_size != ours.vocab_size:
        raise ModelError(
            f"the head {theirs.source} is of a vocabulary of {theirs.vocab_size} tokens, and "
            f"{ours.source} has one of {ours.vocab_size}"
        )
    found = theirs.count("target_hidden_size", theirs.hidden_size)
    if found != ours.hidden_size:
        raise ModelError(
            f"the head {theirs.source} reads hidden states of {found} numbers, and those of "
            f"{ours.source} have {ours.hidden_size}"
        )
    folder = os.path.dirname(theirs.source)
    table: Any = getattr(model.module, "embedding", None)
    module, dtype = Eagle3(config), _dtype_of(table, config)
    with opened_folder(folder, model.device) as files:
        tokens = _take_tokens(files, config, model.device)
        is_shared = "embed_tokens.weight" not in files.names()
        if is_shared:
            if table is None or theirs.hidden_size != ours.hidden_size:
                raise ModelError(
                    f"{folder} has no embed_tokens.weight, and {ours.source} no table of tokens "
                    f"of {theirs.hidden_size} numbers to use in its place"
                )
            module.embedding = None  # type: ignore[assignment]
        parameters = Filling(module, files, Eagle3.names, dtype, model.device, None)
        place(parameters, "device", None, model.device, 0)
    if is_shared:
        module.embedding = table
    module.eval()
    return Head(config, module, tokens, model, feature_layers(config, ours.num_layers))


def predictor_of(config: Config) -> Any:
    """The layer of multi-token prediction that files of a model have beside it, without numbers.
    Raises ModelError for those that have none, or several."""
    found = getattr(class_of(config.architecture, config.source), "predictor", None)
    if found is None:
        raise ModelError(
            f'{config.source}: {config.architecture} has no layer for draft="mtp"; '
            "MiMoForCausalLM has one"
        )
    count = config.count("num_nextn_predict_layers", 0)
    if count != 1:
        raise ModelError(
            f'{config.source}: draft="mtp" takes one layer, and num_nextn_predict_layers is {count}'
        )
    return found(config)


def load_predictor(model: Model) -> Head:
    """The head that the files of a model have beside it; random numbers where the model's are.
    Raises ModelError for files without one, and tensors that do not fit."""
    module, network = predictor_of(model.config), model.module
    table: Any = getattr(network, "embedding", None)
    dtype = _dtype_of(table, model.config)
    with _predictor_parameters(module, model.config, model.folder, dtype, model.device) as filling:
        place(filling, "device", None, model.device, 0)
    module.share(network)
    module.eval()
    return Head(model.config, module, None, model, (model.config.num_layers,))


def predictor_bytes(config: Config, folder: str | None, device: Any) -> tuple[int, int]:
    """As head_bytes(), of the head in the files of a model; `folder` is None for random numbers."""
    module = predictor_of(config)
    with _predictor_parameters(module, config, folder, config.dtype, device) as filling:
        weights = sum(filling.nbytes(path) for path in filling.first.values())
    token = CacheFormat(config.dtype).token_bytes(module.cache_layers())
    return weights, token + config.hidden_size * itemsize(config.dtype)


@contextlib.contextmanager
def _predictor_parameters(
    module: Any, config: Config, folder: str | None, dtype: str, device: Any
) -> Iterator[Filling | RandomFilling]:
    """What fills the layer; files are open meanwhile."""
    if folder is None:
        yield RandomFilling(module, dtype, device, None, config.source)
        return
    with opened_folder(folder, device) as files:
        first = f"{module.prefix}0."
        for name in files.names():
            if not name.startswith(module.prefix):
                del files.files[name]
            elif not name.startswith(first):
                raise ModelError(f"{folder}: {name} is of a second layer, and the config has one")
        tensors = quantised(files, quantization_config(config.fields, folder), config.source)
        yield Filling(module, tensors, module.names, dtype, device, None)


def drop_unread(files: SafeTensorsFiles, architecture: Any) -> None:
    """Takes tensors out of a model's: those of a predictor, which are read with draft="mtp" alone,
    and those behind the prefixes in `unread` of its class."""
    predictor = getattr(architecture, "predictor", None)
    prefixes: tuple[str, ...] = getattr(architecture, "unread", ())
    if predictor is not None:
        prefixes = (*prefixes, predictor.prefix)
    for name in files.names():
        if name.startswith(prefixes):
            del files.files[name]


def head_bytes(config: Config, target: Config, device: Any) -> tuple[int, int]:
    """Bytes of a head's weights, by the headers of its files, and of each token's keys, values and
    hidden states of the model `target`."""
    with opened_folder(os.path.dirname(config.source), device) as files:
        read = [name for name in files.names() if name not in ("d2t", "t2d")]
        weights = sum(math.prod(files.shape(name)) for name in read)
    item = itemsize(target.dtype)
    token = CacheFormat(target.dtype).token_bytes([(config.num_kv_heads, config.head_dim)])
    return weights * item, token + 3 * target.hidden_size * item


def _dtype_of(table: Any, config: Config) -> str:
    """The dtype of a model's hidden states, which is that of its table of tokens."""
    name = str(table.weight.dtype.name) if table is not None else config.dtype
    return name if name in ("float32", "float16", "bfloat16") else config.dtype


def _take_tokens(files: SafeTensorsFiles, config: Config, device: Any) -> Array | None:
    """The tokens of the logits, by d2t: how far each is above its number. `files` has neither that
    table nor the other way round then."""
    files.files.pop("t2d", None)
    count = config.count("draft_vocab_size", config.vocab_size)
    if "d2t" not in files.names():
        if count == config.vocab_size:
            return None
        raise ModelError(
            f"{files.source} has no d2t, and its {count} logits are fewer than the vocabulary of "
            f"{config.vocab_size}"
        )
    tokens = files.read("d2t").numpy().astype(np.int64).reshape(-1)
    del files.files["d2t"]
    if tokens.size != count:
        raise ModelError(f"{files.source}: d2t has {tokens.size} numbers for {count} logits")
    tokens += np.arange(count)
    if tokens.min() < 0 or tokens.max() >= config.vocab_size or len(set(tokens.tolist())) < count:
        raise ModelError(
            f"{files.source}: d2t makes no {count} different tokens below {config.vocab_size}"
        )
    return kw.asarray(tokens.astype(np.int32), device=device)
