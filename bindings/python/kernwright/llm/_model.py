"""llm.Model: a model with its files' config, and what one asks of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import kernwright as kw
from kernwright._core import Array
from kernwright.errors import ArgumentError
from kernwright.llm._config import Config
from kernwright.llm._errors import ContextError, ModelError
from kernwright.llm._step import WholeStep
from kernwright.nn import Module

__all__ = ["Model"]


class Model:
    """A language model; llm.load() makes one.

    `config` has its extents, `module` is the network, a kw.nn.Module that is called with an
    llm.Step. Not for several threads.
    """

    def __init__(self, config: Config, module: Module) -> None:
        self.config, self.module = config, module

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters in nested dicts, as Module.parameters() gives them."""
        return self.module.parameters()

    def logits(self, tokens: Sequence[int]) -> Array:
        """The logits behind each token of a sequence: (tokens, vocabulary), float32.

        Raises ModelError for tokens outside of the vocabulary, ContextError for more than the
        model has positions for.

        >>> from kernwright import llm
        >>> model = llm.load(random={
        ...     "architectures": ["LlamaForCausalLM"], "vocab_size": 64, "hidden_size": 32,
        ...     "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2,
        ...     "dtype": "float32",
        ... })
        >>> model.logits([1, 2, 3]).dtype.name
        'float32'
        """
        step = WholeStep([self.checked_tokens(tokens)], select="all")
        made = self.module(step).astype("float32")
        return made[:, : self.config.vocab_size]  # type: ignore[no-any-return]

    def perplexity(self, tokens: Sequence[int]) -> float:
        """exp of the mean of -log p(token | those before) over all tokens but the first; sequences
        beyond the model's positions are cut into pieces of that length.

        >>> from kernwright import llm
        >>> model = llm.load(random={
        ...     "architectures": ["LlamaForCausalLM"], "vocab_size": 64, "hidden_size": 32,
        ...     "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2,
        ...     "dtype": "float32",
        ... })
        >>> 60 < model.perplexity([1, 2, 3, 4]) < 70
        True
        """
        length, total, count = self.config.max_length, 0.0, 0
        for begin in range(0, max(len(tokens) - 1, 1), max(length - 1, 1)):
            piece = list(tokens[begin : begin + length])
            if len(piece) < 2:
                raise ModelError("perplexity() takes two tokens at least")
            targets = kw.asarray(np.asarray(piece[1:], np.int64))
            losses = kw.nn.cross_entropy(self.logits(piece)[:-1], targets, reduction="sum")
            total, count = total + float(losses), count + len(piece) - 1
        return math.exp(total / count)

    def checked_tokens(self, tokens: Sequence[int]) -> list[int]:
        """The tokens as ints. Raises ModelError, ContextError, ArgumentError.

        >>> from kernwright import llm
        >>> model = llm.load(random={
        ...     "architectures": ["LlamaForCausalLM"], "vocab_size": 64, "hidden_size": 32,
        ...     "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2,
        ...     "dtype": "float32",
        ... })
        >>> model.checked_tokens(np.array([1, 2]))
        [1, 2]
        """
        try:
            numbers = [int(each) for each in tokens if not isinstance(each, (str, bool, float))]
            whole = len(numbers) == len(tokens)
        except (TypeError, ValueError):
            whole = False
        if not whole:
            raise ArgumentError(f"tokens are a list of whole numbers, got {tokens!r:.60}")
        if not numbers:
            raise ModelError("a prompt has one token at least, got none")
        outside = [each for each in numbers if not 0 <= each < self.config.vocab_size]
        if outside:
            raise ModelError(
                f"the token {outside[0]} is outside of the vocabulary of {self.config.vocab_size}"
            )
        if len(numbers) > self.config.max_length:
            raise ContextError(
                f"the prompt has {len(numbers)} tokens, and the context holds "
                f"{self.config.max_length}"
            )
        return numbers

    def __repr__(self) -> str:
        return f"<llm.Model {self.config.architecture}, {self.module!r}>"
