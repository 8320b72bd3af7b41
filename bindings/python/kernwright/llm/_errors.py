"""Errors of language models."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kernwright.errors import Error, StoreError

__all__ = ["ContextError", "EngineClosed", "ModelError", "QueueFull"]


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


class DamagedFile(ModelError, StoreError):
    """A file of a model that is damaged: a ModelError, and the StoreError of the file's reader."""


@contextmanager
def naming_damage() -> Iterator[None]:
    """Turns a StoreError into a DamagedFile."""
    try:
        yield
    except StoreError as error:
        if isinstance(error, ModelError):
            raise
        raise DamagedFile(str(error)) from error


class ContextError(ModelError):
    """A prompt, or a prompt and the tokens asked for, is longer than the context; the message has
    both lengths."""


class EngineClosed(Error):
    """An llm.Engine takes no requests: it was closed, or its thread ended. The message names the
    cause."""


class QueueFull(Error):
    """As many requests wait for an llm.Engine as its `queue_limit` allows. `retry_after`: seconds
    until one of them is likely to have left, 1 at least.

    >>> from kernwright import llm
    >>> llm.QueueFull("8 requests wait", retry_after=2.5).retry_after
    2.5
    """

    def __init__(self, message: str, retry_after: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after
