"""Drafts: guesses of the next tokens, which one step of the model checks all at once."""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING, Any

from kernwright.errors import ArgumentError, InvalidArgument

if TYPE_CHECKING:
    from kernwright.llm._heads import Head
    from kernwright.llm._model import Model

__all__ = ["Draft"]

_LONGEST = 64  # tokens of an n-gram, as the kernel has it
_MOST_TOKENS = 31
_USUAL_TOKENS = {"ngram": 7, "jacobi": 7, "model": 4, "mtp": 1}


class DraftWriter:
    """The base of what may write drafts: Model and Head."""


@dataclasses.dataclass(frozen=True)
class Draft:
    """How the next tokens of a text are guessed: the `draft` of llm.Engine and Model.generate().

    "ngram" takes the tokens that followed the last tokens of the text where they stood before: the
    longest match of `shortest` to `longest` tokens, the latest of equal ones. "jacobi" takes the
    tokens that the model wrote behind a wrong draft. "mtp" is the layer of multi-token prediction
    in the files of the model. `model` is a smaller llm.Model of the same vocabulary, the path of
    one, or the path of an EAGLE-3 head.

    A step checks up to `tokens` drafts of each text. The model writes the same tokens with and
    without drafts, but where two logits are equal but for rounding: a step with drafts runs other
    kernels. Drafts are left out where they do not pay; `always=True` measures nothing.

    Raises InvalidArgument, ArgumentError. Where it is used, a model of another vocabulary, device
    or with weights in the host's memory raises llm.ModelError, and its files what llm.load() does.

    >>> from kernwright import llm
    >>> model = llm.load(random={
    ...     "architectures": ["LlamaForCausalLM"], "vocab_size": 64, "hidden_size": 32,
    ...     "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2,
    ...     "dtype": "float32",
    ... })
    >>> draft = llm.Draft("ngram", tokens=3, longest=4)
    >>> made = model.generate([1, 2, 3], max_tokens=9, draft=draft)
    >>> made.tokens == model.generate([1, 2, 3], max_tokens=9).tokens
    True
    >>> twin = llm.Draft(model=model, tokens=3)  # as large as the model: a small one pays
    >>> model.generate([1, 2, 3], max_tokens=9, draft=twin).tokens == made.tokens
    True
    """

    kind: str = "ngram"
    _: dataclasses.KW_ONLY
    model: str | os.PathLike[str] | Model | Head | None = None
    tokens: int | None = None
    """Without a number 4 of a model or a head, 1 of "mtp", else 7."""
    shortest: int = 1
    longest: int = 8
    always: bool = False

    def __post_init__(self) -> None:
        kinds = ("ngram", "jacobi", "model", "mtp")
        if self.kind not in kinds or (self.kind == "model" and self.model is None):
            raise ArgumentError(
                f'a draft is "ngram", "jacobi" or "mtp", or has model=, got {self.kind!r:.60}'
            )
        if self.kind == "mtp" and self.model is not None:
            raise ArgumentError(
                'a draft of "mtp" has the layer of the model itself: leave model out'
            )
        if self.model is not None:
            object.__setattr__(self, "kind", "model")
            _require_model(self.model)
        if self.tokens is None:
            object.__setattr__(self, "tokens", _USUAL_TOKENS[self.kind])
        for name, most in (("tokens", _MOST_TOKENS), ("shortest", _LONGEST), ("longest", _LONGEST)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int):
                raise ArgumentError(f"{name} of a draft is an int, got {value!r:.60}")
            if not 1 <= value <= most:
                raise InvalidArgument(f"{name} of a draft is from 1 to {most}, got {value}")
        if self.shortest > self.longest:
            raise InvalidArgument(
                f"the shortest n-gram of a draft has {self.shortest} tokens, and the longest "
                f"{self.longest}: swap them"
            )
        if not isinstance(self.always, bool):
            raise ArgumentError(f"always is True or False, got {self.always!r:.60}")

    @property
    def has_model(self) -> bool:
        """Whether a model, a head or a layer writes the drafts: of one model alone."""
        return self.model is not None or self.kind == "mtp"


def _require_model(model: Any) -> None:
    """Raises ArgumentError for what is no model, and no path."""
    if not isinstance(model, (str, os.PathLike, DraftWriter)):
        raise ArgumentError(f"model of a draft is a path or an llm.Model, got {model!r:.60}")


def draft_of(draft: Any, tokens: int | None = None) -> Draft | None:
    """What a `draft` option means: a Draft, "ngram", "jacobi", "mtp", the path of a model, or None
    and "none" for none. Raises ArgumentError."""
    if draft is None or isinstance(draft, Draft):
        return draft
    if draft == "none":
        return None
    if draft in ("ngram", "jacobi", "mtp"):
        return Draft(draft, tokens=tokens)
    if not isinstance(draft, (str, os.PathLike)):
        raise ArgumentError(
            'draft is "ngram", "jacobi", "mtp", the path of a model, an llm.Draft or None, got '
            f"{draft!r:.60}"
        )
    if not os.path.exists(draft):
        name = os.fsdecode(draft)
        raise ArgumentError(
            f'a draft is "ngram", "jacobi", "mtp" or the path of a model, and there is no '
            f"{name!r:.200}"
        )
    return Draft(model=draft, tokens=tokens)


def chosen_draft(draft: Any, usual: Draft | None, deterministic: bool) -> Draft | None:
    """The draft of an option, or without one the usual draft of a model: deterministic steps have
    none. Raises ArgumentError, InvalidArgument."""
    if draft is None:
        return None if deterministic else usual
    chosen = draft_of(draft)
    require_no_draft(chosen, deterministic)
    return chosen


def require_no_draft(draft: Draft | None, deterministic: bool) -> None:
    """Raises InvalidArgument for both."""
    if draft is not None and deterministic:
        raise InvalidArgument(
            "deterministic steps all have one size, and steps with drafts have another: leave "
            "draft or deterministic out"
        )
