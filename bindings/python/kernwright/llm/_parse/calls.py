"""Calls written as JSON objects ({"name": ..., "arguments": ...}) or as tags, read as they come."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Collection, Generator, Mapping
from typing import Any

from kernwright.llm._parse.output import Output
from kernwright.llm._parse.reader import Reader, Wait, Write

_ARGUMENTS = ("arguments", "parameters")


class _Malformed(Exception):
    """There is no call here."""


def json_call(
    reader: Reader, output: Output, lead: str = "", names: Collection[str] | None = None
) -> Generator[None, None, bool]:
    """Reads an object with the name and the arguments of a call.

    Arguments are passed on as they come, where the name stands before them. `lead` is the mark
    before the object: after it, arguments may be missing. `names` are the names allowed. Returns
    False where there is no such object; then `lead` and the text are content.
    """
    begun = len(output.calls)
    reader.note()
    try:
        yield from _call(reader, output, bool(lead), names)
    except _Malformed:
        text = reader.noted()
        if len(output.calls) == begun:
            output.content(lead + text)
            return False
    reader.noted()
    output.end_call()
    return True


def _call(reader: Reader, output: Output, is_marked: bool, names: Collection[str] | None) -> Wait:
    fields: dict[str, str] = {}
    begun = False

    def begin() -> None:
        if names is not None and fields["name"] not in names:
            raise _Malformed
        output.call(fields["name"], fields.get("id", ""))

    yield from _expect(reader, "{")
    while True:
        key = yield from _text(reader)
        yield from _expect(reader, ":")
        yield from reader.spaces()
        first = yield from reader.peek()
        if key in _ARGUMENTS and "name" in fields and first == "{" and not begun:
            begun = True
            begin()
            yield from value(reader, output.arguments)
        elif key == "name" or first == '"':  # arguments may be JSON within a text
            fields[key] = yield from _text(reader)
        else:
            parts: list[str] = []
            yield from value(reader, parts.append)
            fields[key] = "".join(parts)
        yield from reader.spaces()
        after = yield from reader.next()
        if after == "}":
            break
        if after != ",":
            raise _Malformed
    if not begun:
        missing = "{}" if is_marked else ""
        found = next((fields[key] for key in _ARGUMENTS if key in fields), missing)
        if "name" not in fields or not isinstance(_parsed(found), dict):
            raise _Malformed
        begin()
        output.arguments(found)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _expect(reader: Reader, character: str) -> Wait:
    yield from reader.spaces()
    if (yield from reader.next()) != character:
        raise _Malformed


def _text(reader: Reader) -> Generator[None, None, str]:
    """A text in quotes."""
    yield from reader.spaces()
    if (yield from reader.peek()) != '"':
        raise _Malformed
    parts: list[str] = []
    yield from value(reader, parts.append)
    found = _parsed("".join(parts))
    if not isinstance(found, str):
        raise _Malformed
    return found


def value(reader: Reader, write: Write) -> Wait:
    """Passes one value of JSON on as it stands. Raises _Malformed at the end of the text."""
    depth, quoted, escaped = 0, False, False
    while True:
        character = yield from reader.peek()
        if not character:
            raise _Malformed
        if not quoted and not depth and (character in ",}]" or character.isspace()):
            return  # after a number or a word
        yield from reader.next()
        write(character)
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = quoted
        elif character == '"':
            quoted = not quoted
        elif not quoted:
            depth += (character in "{[") - (character in "}]")
        if not depth and not quoted and character in '}]"':
            return


def json_arguments(reader: Reader, output: Output) -> Wait:
    """Reads the object of the arguments of the last call, up to its end."""
    with contextlib.suppress(_Malformed):  # where the text ends within it
        yield from value(reader, output.arguments)


_DSML = "(?:\uff5cDSML\uff5c)?"
_TAG = re.compile(rf'<{_DSML}parameter(?:=| name=)"?([^">\s]+)"?([^>]*)>')
_END = re.compile(rf"</{_DSML}parameter>|<{_DSML}parameter[= ]|</function>")


def tagged_arguments(text: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments written as <parameter=name>value</parameter>.

    Strings by the schema stay texts; other values are JSON where they can be.
    """
    made: dict[str, Any] = {}
    for match in _TAG.finditer(text):
        after = _END.search(text, match.end())
        inner = text[match.end() : after.start() if after else len(text)]
        inner = inner.removeprefix("\n").removesuffix("\n")
        kind = schema.get(match[1])
        is_text = isinstance(kind, Mapping) and kind.get("type") == "string"
        if not is_text and 'string="true"' not in match[2]:
            found = _parsed(inner)
            made[match[1]] = inner if found is None and inner.strip() != "null" else found
        else:
            made[match[1]] = inner
    return made


def functions_of(tools: Any) -> dict[str, Mapping[str, Any]]:
    """The properties of the parameters of tools, by name."""
    found: dict[str, Mapping[str, Any]] = {}
    for tool in tools or ():
        function = tool.get("function", tool) if isinstance(tool, Mapping) else None
        if isinstance(function, Mapping) and isinstance(function.get("name"), str):
            parameters = function.get("parameters")
            inner = parameters.get("properties") if isinstance(parameters, Mapping) else None
            found[function["name"]] = inner if isinstance(inner, Mapping) else {}
    return found
