"""Errors as OpenAI's clients read them."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from kernwright import llm
from kernwright.errors import ArgumentError, Error, InvalidArgument, OutOfMemory

__all__ = ["TYPES", "ApiError", "about", "as_api_error", "renamed"]

TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    405: "invalid_request_error",
    408: "timeout_error",
    413: "invalid_request_error",
    415: "invalid_request_error",
    429: "rate_limit_error",
    500: "server_error",
    503: "overloaded_error",
    504: "timeout_error",
}


CONTEXT_CODE = "context_length_exceeded"
_CONTEXT_WORDS = "; this model's maximum context length is exceeded"  # clients look for these words


class ApiError(Exception):
    """A refusal or a failure: its HTTP status, and a message that names field and limit.

    `param` is the field of the body. `code` is a word for programs. `retry_after` is in seconds.
    `allow` is the method that the path takes.
    """

    def __init__(
        self, status: int, message: str, *, param: str | None = None, code: str | None = None,
        retry_after: float | None = None, allow: str | None = None,
    ) -> None:  # fmt: skip
        if code == CONTEXT_CODE:
            message += _CONTEXT_WORDS
        super().__init__(message)
        self.status, self.message, self.param, self.code = status, message, param, code
        self.retry_after, self.allow = retry_after, allow

    def body(self) -> dict[str, Any]:
        """The JSON of the answer, and of an error event in a stream."""
        kind = TYPES.get(self.status, "server_error")
        return {
            "error": {
                "message": self.message, "type": kind, "param": self.param,
                "code": self.code or kind,
            }
        }  # fmt: skip

    def headers(self) -> dict[str, str]:
        """Retry-After, in whole seconds, how to authenticate, and the method to use."""
        made = {}
        if self.retry_after is not None:
            made["Retry-After"] = str(max(1, math.ceil(self.retry_after)))
        if self.allow is not None:
            made["Allow"] = self.allow
        if self.status == 401:
            made["WWW-Authenticate"] = "Bearer"
        return made


@contextlib.contextmanager
def about(field: str, word: str = "") -> Iterator[None]:
    """What the library refuses within it names a field of the body. With `word` only messages that
    begin with it do. A message without the name of the field gets it in front."""
    try:
        yield
    except (InvalidArgument, ArgumentError, llm.ModelError) as error:
        made = as_api_error(error)
        if made.status != 400 or not str(error).startswith(word):
            raise
        made.param = field
        if field not in made.message:
            made.message = f"{field}: {made.message}"
        raise made from error


@contextlib.contextmanager
def renamed(rules: Mapping[str, str]) -> Iterator[None]:
    """Errors about fields of chats name those of another interface: `rules` are replacements by
    regular expressions; the first match counts."""
    try:
        yield
    except ApiError as error:
        for pattern, name in rules.items():
            before = error.param or ""
            error.param, count = re.subn(pattern, name, before)
            if count:
                error.message = error.message.replace(before, error.param)
                break
        error.param = error.param or None
        raise


def as_api_error(error: BaseException) -> ApiError:
    """What the library raised, as an answer: 400 for wrong requests, 429 for a full queue, 503 for
    memory that is short, 500 for all else."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, llm.QueueFull):
        return ApiError(429, str(error), code="queue_full", retry_after=error.retry_after)
    if isinstance(error, llm.ContextError):
        return ApiError(  # clients look for these words
            400, f"the prompt is too long: {error}", code=CONTEXT_CODE
        )
    if isinstance(error, llm.EngineClosed):
        return ApiError(500, f"the engine has stopped: {_brief(error)}", code="engine_stopped")
    if isinstance(error, (InvalidArgument, ArgumentError, llm.ModelError)):
        return ApiError(400, str(error))
    if isinstance(error, (OutOfMemory, MemoryError)):
        return ApiError(503, f"memory is short: {error}", code="out_of_memory", retry_after=1)
    if isinstance(error, Error):
        return ApiError(500, _brief(error))
    # Messages of other exceptions may hold what a user wrote.
    return ApiError(500, f"the server failed with {type(error).__name__}; its log tells more")


def _brief(error: BaseException) -> str:
    """Its message without the stack of Python, which names files of the server."""
    return str(error).partition("\n\nAt:")[0]
