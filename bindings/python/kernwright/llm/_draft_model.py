"""The model that writes drafts: loaded beside the one that checks them, and compared with it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from kernwright._core import Array
from kernwright.llm._caches import CacheFormat
from kernwright.llm._draft import Draft
from kernwright.llm._errors import ModelError
from kernwright.llm._step import Step

if TYPE_CHECKING:
    from kernwright.llm._model import Model

__all__ = ["DraftModel", "loaded_draft", "with_model"]


class DraftModel(NamedTuple):
    """What an engine takes of a model that writes drafts."""

    module: Callable[[Step], Array]
    layers: list[tuple[int, int]]
    """(kv_heads, head_dim) of what each layer keeps of a token."""
    format: CacheFormat
    context: int
    vocabulary: int

    @classmethod
    def of(cls, draft: Draft | None) -> DraftModel | None:
        """That of a draft whose model is loaded."""
        if draft is None or draft.model is None:
            return None
        model = _model_of(draft)
        return cls(
            model.module, model.cache_layers(), model.cache_format, model.config.max_length,
            model.config.vocab_size,
        )  # fmt: skip

    @property
    def token_bytes(self) -> int:
        """Bytes of keys and values of one token in all layers."""
        return self.format.token_bytes(self.layers)


def _model_of(draft: Draft) -> Model:
    from kernwright.llm._model import Model

    assert isinstance(draft.model, Model)
    return draft.model


def with_model(draft: Draft, device: Any) -> Draft:
    """The draft with its model loaded, if it has one. Raises what llm.load() raises."""
    from kernwright.llm._load import load
    from kernwright.llm._model import Model

    if draft.model is None or isinstance(draft.model, Model):
        return draft
    return dataclasses.replace(draft, model=load(draft.model, device=device, memory="device"))


def loaded_draft(draft: Draft | None, model: Model) -> Draft | None:
    """The draft with its model loaded, for drafts of texts of `model`. Raises ModelError for a
    draft model that does not fit, and what llm.load() raises."""
    if draft is None or draft.model is None:
        return draft
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
