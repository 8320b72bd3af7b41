"""Grammars of tool calls in the formats of models: llm.MessageParser reads them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from kernwright.errors import InvalidArgument
from kernwright.llm._guide.compiler import WHITESPACE
from kernwright.llm._guide.dates import with_strict_dates

__all__ = ["call_grammar"]

_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_NO_PARAMETERS = {"type": "object", "properties": {}, "additionalProperties": False}


class _Layout(NamedTuple):
    """The texts around the names and arguments of calls."""

    before_name: str
    before_arguments: str
    after: str
    separator: str | None
    """Between two calls; None: a text has one."""
    begin: str = ""
    end: str = ""


_OBJECT = ('{"name": "', '", "arguments": ', "}")
_HERMES = _Layout(
    "<tool_call>\n" + _OBJECT[0], _OBJECT[1], _OBJECT[2] + "\n</tool_call>", separator="\n"
)
_LLAMA3 = _Layout('{"name": "', '", "parameters": ', "}", separator="; ")
_MISTRAL_LIST = _Layout(*_OBJECT, separator=", ", begin="[TOOL_CALLS][", end="]")
_MISTRAL = _Layout("[TOOL_CALLS]", "[ARGS]", "", separator="")
_BEGIN, _END = (f"<\uff5ctool\u2581calls\u2581{each}\uff5c>" for each in ("begin", "end"))
_CALL, _CALLED = (f"<\uff5ctool\u2581call\u2581{each}\uff5c>" for each in ("begin", "end"))
_SEPARATOR = "<\uff5ctool\u2581sep\uff5c>"
_DEEPSEEK_BLOCK = _Layout(
    f"{_CALL}function{_SEPARATOR}", "\n```json\n", f"\n```{_CALLED}", separator="\n",
    begin=_BEGIN, end=_END,
)  # fmt: skip
_DEEPSEEK = _Layout(_CALL, _SEPARATOR, _CALLED, separator="", begin=_BEGIN, end=_END)
_HARMONY = _Layout(
    "<|channel|>commentary to=functions.", " <|constrain|>json<|message|>", "", separator=None
)


def _layout(format: str, template: str) -> _Layout:
    """The layout of a format; a template tells which of several."""
    if format == "mistral":
        return _MISTRAL if "[ARGS]" in template else _MISTRAL_LIST
    if format == "deepseek":
        return _DEEPSEEK_BLOCK if "```json" in template else _DEEPSEEK
    return {"hermes": _HERMES, "llama3": _LLAMA3, "harmony": _HARMONY}[format]


def call_grammar(
    format: str, functions: Sequence[Mapping[str, Any]], *, template: str = "", prompt: str = "",
    special: Mapping[str, int] | None = None, several: bool = False,
) -> str:  # fmt: skip
    """The grammar, in Lark's syntax, of a call of one of the functions, or of several.

    `format` is one of llm.MessageParser, `template` the text of the chat template, `special` the
    special tokens of the tokenizer. A function is {"name", "parameters"}; its arguments
    validate against the parameters. Where `prompt` ends with an open <think>, reasoning comes
    first. Raises InvalidArgument for names that no format can hold, and for parameters that are no
    object.

    >>> from kernwright.llm._guide.calls import call_grammar
    >>> print(call_grammar("llama3", [{"name": "now"}]).splitlines()[0])
    start: calls
    """
    layout, marks = _layout(format, template), special or {}
    calls = "call"
    if several and layout.separator is not None:
        calls = f"call ({_literal(layout.separator, marks)} call)*"
    rules = [
        f"start: {_reasoning(prompt, marks)}calls",
        f"calls: {_literal(layout.begin, marks)} {calls} {_literal(layout.end, marks)}",
        "call: " + " | ".join(f"call_{i}" for i in range(len(functions))),
    ]
    for i, function in enumerate(functions):
        name = function["name"]
        if not _NAME.fullmatch(name):
            raise InvalidArgument(
                f"a call of {name!r:.60} cannot be forced: names have letters, digits, _ - and ."
            )
        before = _literal(layout.before_name + name + layout.before_arguments, marks)
        rules.append(f"call_{i}: {before} arguments_{i} {_literal(layout.after, marks)}")
        rules.append(f"arguments_{i}: %json {_schema(function)}")
    thinks = [f"reasoning[suffix={json.dumps(_closing(prompt))}]: /(?s:.*)/"]
    return "\n".join(rules + (thinks if "reasoning" in rules[0] else [])) + "\n"


def _schema(function: Mapping[str, Any]) -> str:
    """The parameters of a function as JSON."""
    parameters = function.get("parameters") or _NO_PARAMETERS
    if parameters.get("type", "object") != "object":
        raise InvalidArgument(
            f"the parameters of {function['name']} are an object, and their type is "
            f"{parameters['type']!r:.60}"
        )
    more = {"type": "object", "x-guidance": {"whitespace_pattern": WHITESPACE}}
    try:
        return json.dumps(
            {**with_strict_dates(parameters), **more}, ensure_ascii=False, allow_nan=False
        )  # fmt: skip
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidArgument(
            f"the parameters of {function['name']} cannot be written as JSON: {error}"
        ) from None


def _closing(prompt: str) -> str:
    """The mark at the end of the reasoning of a prompt, "" without any."""
    end = prompt.rstrip()
    return "</think>" if end.endswith("<think>") else "[/THINK]" if end.endswith("[THINK]") else ""


def _reasoning(prompt: str, marks: Mapping[str, int]) -> str:
    """The part before calls."""
    closing = _closing(prompt)
    if not closing:
        return ""
    spaces = r" /\s{0,4}/ "
    return f"/(?s:.*)/ <[{marks[closing]}]>{spaces}" if closing in marks else f"reasoning{spaces}"


def _literal(text: str, marks: Mapping[str, int]) -> str:
    """A text in a grammar: special tokens in it are tokens, not their characters."""
    found = [mark for mark in marks if mark and mark in text]
    parts = re.split("(" + "|".join(map(re.escape, found)) + ")", text) if found else [text]
    return " ".join(
        f"<[{marks[part]}]>" if part in marks else json.dumps(part, ensure_ascii=False)
        for part in parts
        if part
    )
