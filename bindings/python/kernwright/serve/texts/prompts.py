"""Prompts of a body: a text, tokens, or a list of such, still in JSON."""

from __future__ import annotations

from typing import Any

import msgspec

from kernwright.serve.http.errors import ApiError

__all__ = ["prompts_of"]


def prompts_of(raw: msgspec.Raw, name: str, most: int, most_tokens: int) -> list[str | list[int]]:
    """Prompts, at least one and `most` at most. `most_tokens`: of each. Raises ApiError.

    Commas are counted before a list of numbers is read: the interpreter stands still meanwhile.
    """
    if bytes(memoryview(raw)[:1]) == b'"':
        return [_read(memoryview(raw), str, name)]  # large texts are not copied
    content = bytes(raw).strip()
    if content in (b"", b"null"):
        raise ApiError(400, f"the field {name} is missing", param=name, code="missing_field")
    inner = content[1:].lstrip()
    if content[:1] != b"[" or inner[:1] == b"]":
        raise _wrong(name, "is a text, a list of tokens, or a list of such, and not empty")
    if inner[:1] == b'"':
        texts: list[str | list[int]] = list(_read(content, list[str], name))
        return _few(texts, name, most)
    if inner[:1] == b"[":
        if content.count(b",") > most_tokens * most:
            raise _wrong(name, f"has more than {most} prompts of {most_tokens} tokens")
        lists: list[str | list[int]] = list(_read(content, list[list[int]], name))
        return _few(lists, name, most)
    if content.count(b",") >= most_tokens:
        raise ApiError(
            400, f"{name} has {content.count(b',') + 1} tokens, and the context holds "
            f"{most_tokens}", param=name, code="context_length_exceeded",
        )  # fmt: skip
    return [_read(content, list[int], name)]


def _read(content: bytes | memoryview, kind: Any, name: str) -> Any:
    try:
        return msgspec.json.decode(content, type=kind)
    except msgspec.ValidationError as error:
        message = str(error).replace("`$", f"`{name}")
        raise ApiError(400, f"{name}: {message}", param=name, code="invalid_type") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:  # by the version of msgspec
        raise ApiError(400, f"{name} is not UTF-8: {error}", param=name,
                       code="invalid_json") from None  # fmt: skip


def _few(found: list[str | list[int]], name: str, most: int) -> list[str | list[int]]:
    if len(found) > most:
        raise _wrong(name, f"has {most} prompts at most, got {len(found)}")
    return found


def _wrong(name: str, what: str) -> ApiError:
    return ApiError(400, f"{name} {what}", param=name, code="invalid_value")
