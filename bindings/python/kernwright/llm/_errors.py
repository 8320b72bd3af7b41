"""Errors of language models."""

from __future__ import annotations

from kernwright.errors import Error

__all__ = ["ContextError", "ModelError"]


class ModelError(Error, ValueError):
    """A model, a file of one or a request that cannot be used; the message names the file, the
    tensor or field, and what was expected.

    >>> from kernwright import llm
    >>> try:
    ...     raise llm.ModelError("config.json has no field vocab_size")
    ... except ValueError as error:
    ...     print(error)
    config.json has no field vocab_size
    """


class ContextError(ModelError):
    """A prompt, or a prompt and the tokens asked for, is longer than the context; the message has
    both lengths."""
