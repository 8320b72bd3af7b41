"""The model of drafts: loaded beside the model of texts, and compared with it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from kernwright._core import Array
from kernwright.llm._caches import CacheFormat
from kernwright.llm._draft import Draft, DraftWriter
from kernwright.llm._errors import ModelError
from kernwright.llm._fill import itemsize
from kernwright.llm._heads import Head, head_config, load_head, load_predictor
from kernwright.llm._step import Step
from kernwright.llm.models.eagle3 import Eagle3
from kernwright.llm.models.mimo import MiMoPredictor

if TYPE_CHECKING:
    from kernwright.llm._model import Model

__all__ = ["DraftModel", "loaded_draft", "set_loader", "with_model"]

_loaders: list[Callable[..., Model]] = []


def set_loader(load: Callable[..., Model]) -> None:
    """Gives the function that loads draft models, llm.load(): this module is below it."""
    _loaders.append(load)


class DraftModel(NamedTuple):
    """What an engine takes of a draft model."""

    module: Callable[[Step], Array] | Eagle3 | MiMoPredictor
    layers: list[tuple[int, int]]
    """(kv_heads, head_dim) of what each layer keeps of a token."""
    format: CacheFormat
    context: int
    vocabulary: int
    head: Head | None = None
    """None of a model of its own."""

    @classmethod
    def of(cls, draft: Draft | None) -> DraftModel | None:
        """That of a draft whose model is loaded."""
        if draft is None or draft.model is None:
            return None
        if isinstance(draft.model, Head):
            head = draft.model
            return cls(
                head.module, head.module.cache_layers(), CacheFormat(head.dtype),
                head.config.max_length, head.config.vocab_size, head,
            )  # fmt: skip
        model = _model_of(draft)
        return cls(
            model.module, model.cache_layers(), model.cache_format, model.config.max_length,
            model.config.vocab_size,
        )  # fmt: skip

    @property
    def token_bytes(self) -> int:
        """Bytes of keys and values of one token in all layers, and of hidden states for a head."""
        states = 0 if self.head is None else self.head.width * itemsize(self.head.dtype)
        return self.format.token_bytes(self.layers) + states


def _model_of(draft: Draft) -> Model:
    return cast("Model", draft.model)


def with_model(draft: Draft, device: Any) -> Draft:
    """The draft with its model loaded, if it has one; heads are loaded behind their model. Raises
    what llm.load() raises."""
    if draft.model is None or isinstance(draft.model, DraftWriter) or head_config(draft.model):
        return draft
    loaded = _loaders[-1](draft.model, device=device, memory="device")
    return dataclasses.replace(draft, model=loaded)


def loaded_draft(draft: Draft | None, model: Model) -> Draft | None:
    """The draft with its model loaded, for drafts of texts of `model`. Raises ModelError for a
    draft model that does not fit, and what llm.load() raises."""
    if draft is None or not draft.has_model or isinstance(draft.model, Head):
        return draft
    if draft.model is None:
        return dataclasses.replace(draft, kind="model", model=load_predictor(model))
    if (config := head_config(draft.model)) is not None:
        return dataclasses.replace(draft, model=load_head(config, model))
    loaded = with_model(draft, model.device)
    require_draft(_model_of(loaded), model)
    return loaded


def require_draft(draft: Model, model: Model) -> None:
    """Raises ModelError for a model that cannot write drafts for another one."""
    ours, theirs = model.config.source, draft.config.source
    if draft.device != model.device:
        raise ModelError(
            f"the draft model {theirs} is on {draft.device}, and {ours} on {model.device}: load "
            "both on one device"
        )
    if draft.memory.mode != "device":
        raise ModelError(
            f"weights of the draft model {theirs} are in the host's memory "
            f"({draft.memory.mode}): a draft costs more than a token then. Load it with "
            'memory="device"'
        )
    _require_vocabulary(draft, model)


def _require_vocabulary(draft: Model, model: Model) -> None:
    """The tokens must be the same ones. Sizes may differ where both have tokenizers: some models
    have rows of logits for tokens that nobody wrote."""
    ours, theirs = model.config.source, draft.config.source
    if draft is model:
        return
    if model.tokenizer is None or draft.tokenizer is None:
        if model.config.vocab_size == draft.config.vocab_size:
            return
        raise ModelError(
            f"the draft model {theirs} has a vocabulary of {draft.config.vocab_size} tokens, and "
            f"{ours} one of {model.config.vocab_size}: a draft model has the same vocabulary"
        )
    known, found = model.tokenizer._tokens, draft.tokenizer._tokens
    if known == found:
        return
    counts = f"{len(found)} and {len(known)} tokens"
    for id, (token, other) in enumerate(zip(known, found, strict=False)):
        if token != other:
            counts = f"token {id} is {other!r:.40} there and {token!r:.40} here"
            break
    raise ModelError(
        f"the draft model {theirs} has another tokenizer than {ours} ({counts}): a draft model has "
        "the same vocabulary"
    )
