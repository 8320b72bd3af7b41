"""The form of the texts of a body, in all the ways of clients."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from kernwright.llm._guide.form import MOST_CHARACTERS
from kernwright.serve.http.errors import ApiError
from kernwright.serve.protocol import ResponseFormat, SamplingFields, StructuredOutputs

__all__ = ["AskedForm", "form_of_body"]

_RULE = re.compile(r"^\s*[\w-]+\s*::=", re.MULTILINE)
_KINDS = {"json": "schema", "regex": "regex", "choice": "choices", "grammar": "grammar"}


class AskedForm(NamedTuple):
    """The form of the texts of a body."""

    field: str
    """Of the body, for errors."""
    options: dict[str, Any]
    """Of a generation."""


def form_of_body(body: SamplingFields) -> AskedForm | None:
    """None without one. Raises ApiError for a wrong form, and for two."""
    found = [*_of_format(body.response_format), *_structured(body.structured_outputs)]
    for name, kind in _KINDS.items():
        if (value := getattr(body, f"guided_{name}")) is not None:
            found.append(_asked(f"guided_{name}", kind, value))
    if len(found) > 1:
        raise ApiError(
            400, f"{found[0].field} and {found[1].field} exclude each other: a text has one form",
            param=found[1].field, code="invalid_value",
        )  # fmt: skip
    return found[0] if found else None


def _of_format(form: ResponseFormat | None) -> Iterator[AskedForm]:
    if form is None or form.type == "text":
        return
    if form.type == "json_object":
        yield AskedForm("response_format", {"schema": {"type": "object"}})
        return
    if form.type != "json_schema":
        raise ApiError(
            400, f'response_format.type is "text", "json_object" or "json_schema", got '
            f"{form.type!r:.60}", param="response_format.type", code="unsupported_value",
        )  # fmt: skip
    schema = None if form.json_schema is None else form.json_schema.schema
    if not isinstance(schema, dict):
        raise ApiError(
            400, f"response_format.json_schema.schema is an object, got {schema!r:.60}",
            param="response_format.json_schema.schema", code="invalid_value",
        )  # fmt: skip
    yield AskedForm("response_format", {"schema": schema})


def _structured(given: StructuredOutputs | None) -> Iterator[AskedForm]:
    """The fields of vLLM's structured_outputs."""
    if given is None:
        return
    within = "structured_outputs"
    if given.json_object:
        yield AskedForm(f"{within}.json_object", {"schema": {"type": "object"}})
    for field, kind in _KINDS.items():
        if (value := getattr(given, field)) is not None:
            yield _asked(f"{within}.{field}", kind, value)


def _asked(field: str, kind: str, value: Any) -> AskedForm:
    if kind == "grammar" and len(value) <= MOST_CHARACTERS and _RULE.search(value):
        value = _lark(field, value)
    return AskedForm(field, {kind: value})


def _lark(field: str, grammar: str) -> str:
    """A grammar with rules of the form ``root ::= ...``, in Lark's syntax."""
    from llguidance.gbnf_to_lark import any_to_lark

    try:
        return str(any_to_lark(grammar))
    except Exception as error:  # it raises Exception itself
        raise ApiError(
            400, f"{field}: the grammar cannot be read: {error!s:.200}", param=field,
            code="invalid_value",
        ) from None  # fmt: skip
