"""The formats of models: each reads a text and writes the parts of a message."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from kernwright.llm._parse.calls import (
    functions_of,
    json_arguments,
    json_call,
    tagged_arguments,
)
from kernwright.llm._parse.output import Output
from kernwright.llm._parse.reader import Reader, Wait

# Tokens at the end of a turn. They are no part of the message.
_ENDS = (
    *("<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "</s>"),
    "<\uff5cend\u2581of\u2581sentence\uff5c>",
)


def _ignore(text: str) -> None:
    """Drops a text."""


def _reason(reader: Reader, output: Output, end: str) -> Wait:
    output.mark()
    yield from reader.until((end,), output.reasoning)
    output.mark()


def hermes(reader: Reader, output: Output, thinking: bool, tools: Any) -> Wait:
    """Hermes and Qwen: <think>, <tool_call> with JSON or with tags of parameters."""
    if thinking:
        yield from _reason(reader, output, "</think>")
    marks = ("<think>", "<tool_call>", *_ENDS)
    while mark := (yield from reader.until(marks, output.content)):
        if mark == "<think>":
            yield from _reason(reader, output, "</think>")
        elif mark == "<tool_call>":
            yield from _hermes_call(reader, output, tools)
        else:
            output.mark()


def _hermes_call(reader: Reader, output: Output, tools: Any) -> Wait:
    reader.note()
    yield from reader.spaces()
    if (yield from reader.peek()) != "<":
        if (yield from json_call(reader, output, "<tool_call>")):
            yield from reader.until(("</tool_call>",), _ignore)
            output.mark()
        return
    yield from reader.until(("</tool_call>",), _ignore)
    text = reader.noted()
    match = re.match(r"\s*<function=([^>\s]+)>", text)
    if match is None:
        output.content("<tool_call>" + text)
        return
    output.call(match[1])
    made = tagged_arguments(text[match.end() :], functions_of(tools).get(match[1], {}))
    output.arguments(json.dumps(made, ensure_ascii=False))


def llama3(reader: Reader, output: Output, thinking: bool, tools: Any) -> Wait:
    """Llama 3: JSON instead of a text, or after <|python_tag|>; several are separated by ;"""
    reader.note()
    yield from reader.spaces()
    if (yield from reader.peek()) == "{":
        yield from _llama3_calls(reader, output, tools)
    else:
        output.content(reader.noted())
    while mark := (yield from reader.until(("<|python_tag|>", *_ENDS), output.content)):
        output.mark()
        if mark == "<|python_tag|>":
            yield from _llama3_calls(reader, output, tools)


def _llama3_calls(reader: Reader, output: Output, tools: Any) -> Wait:
    names = functions_of(tools) if tools else None
    while (yield from json_call(reader, output, names=names)):
        yield from reader.spaces()
        if (yield from reader.peek()) in (";", ","):
            yield from reader.next()
            yield from reader.spaces()
        if (yield from reader.peek()) != "{":
            output.mark()
            return


def mistral(reader: Reader, output: Output, thinking: bool, tools: Any) -> Wait:
    """Mistral: [TOOL_CALLS] with a list of JSON, or with name[ARGS]{...}; [THINK] or <think>."""
    if thinking:
        yield from _reason(reader, output, "[/THINK]")
    marks = ("[THINK]", "<think>", "[TOOL_CALLS]", *_ENDS)
    while mark := (yield from reader.until(marks, output.content)):
        if mark == "[TOOL_CALLS]":
            yield from _mistral_calls(reader, output)
        elif mark in ("[THINK]", "<think>"):
            yield from _reason(reader, output, "[/THINK]" if mark[0] == "[" else "</think>")
        else:
            output.mark()


def _mistral_calls(reader: Reader, output: Output) -> Wait:
    reader.note()
    yield from reader.spaces()
    if (yield from reader.peek()) != "[":
        yield from _mistral_call(reader, output)
        return
    yield from reader.next()
    lead = "[TOOL_CALLS]"
    while (yield from json_call(reader, output, lead)):
        yield from reader.spaces()
        after = yield from reader.peek()
        if after not in (",", "]"):
            return
        yield from reader.next()
        if after == "]":
            output.mark()
            return


def _mistral_call(reader: Reader, output: Output) -> Wait:
    """One call: name[ARGS]{...} or name[CALL_ID]id[ARGS]{...}, with marks or without."""
    name = ""
    while (character := (yield from reader.peek())) and character not in "[{<":
        name += yield from reader.next()
    id = ""
    if character == "[":
        _, mark = yield from reader.collect(("[CALL_ID]", "[ARGS]"))
        if mark == "[CALL_ID]":
            id, _ = yield from reader.collect(("[ARGS]",))
        yield from reader.spaces()
        character = yield from reader.peek()
    if character != "{" or not re.fullmatch(r"[\w.-]+\s*", name):
        output.content("[TOOL_CALLS]" + reader.noted())
        return
    reader.noted()
    output.call(name.strip(), id.strip())
    yield from json_arguments(reader, output)
    output.mark()


_CALLS = ("<\uff5ctool\u2581calls\u2581begin\uff5c>", "<\uff5ctool\u2581calls\u2581end\uff5c>")
_CALL = ("<\uff5ctool\u2581call\u2581begin\uff5c>", "<\uff5ctool\u2581call\u2581end\uff5c>")
_SEPARATOR = "<\uff5ctool\u2581sep\uff5c>"
_TAGGED = ("<\uff5cDSML\uff5cfunction_calls>", "<\uff5cDSML\uff5ctool_calls>")


def deepseek(reader: Reader, output: Output, thinking: bool, tools: Any) -> Wait:
    """DeepSeek V3 and R1 (JSON in a block of code), V3.1 (bare JSON), V3.2 and V4 (tags)."""
    if thinking:
        yield from _reason(reader, output, "</think>")
    marks = ("<think>", *_CALLS, _CALL[0], *_TAGGED, *_ENDS)
    while mark := (yield from reader.until(marks, output.content)):
        output.mark()
        if mark == "<think>":
            yield from _reason(reader, output, "</think>")
        elif mark == _CALL[0]:
            yield from _deepseek_call(reader, output)
        elif mark in _TAGGED:
            yield from _deepseek_tags(reader, output, mark)


def _deepseek_call(reader: Reader, output: Output) -> Wait:
    reader.note()
    name, mark = yield from reader.collect((_SEPARATOR, _CALL[1]))
    if mark == _SEPARATOR and name.strip() == "function":
        name, _ = yield from reader.collect(("\n",))
    yield from reader.spaces()
    first = yield from reader.peek()
    if first == "`":  # the fence of a block of code
        yield from reader.collect(("\n",))
        yield from reader.spaces()
        first = yield from reader.peek()
    text = reader.noted()
    if mark != _SEPARATOR or not name.strip():
        output.content(_CALL[0] + text)
        return
    output.call(name.strip())
    if first == "{":
        yield from json_arguments(reader, output)
        yield from reader.until((_CALL[1],), _ignore)
    else:
        text, _ = yield from reader.collect((_CALL[1],))
        output.arguments(text.strip())
    output.end_call()


def _deepseek_tags(reader: Reader, output: Output, begin: str) -> Wait:
    end = begin.replace("<", "</", 1)
    invoke, closing = '<\uff5cDSML\uff5cinvoke name="', "</\uff5cDSML\uff5cinvoke>"
    while (yield from reader.until((invoke, end), _ignore)) == invoke:
        name, _ = yield from reader.collect(('"',))
        text, _ = yield from reader.collect((closing,))
        output.call(name)
        made = tagged_arguments(text, {})
        output.arguments(json.dumps(made, ensure_ascii=False))
    output.mark()


_RECIPIENT = re.compile(r"to=([^\s<]+)")
_CHANNEL = re.compile(r"<\|channel\|>\s*(\w+)")


def harmony(reader: Reader, output: Output, thinking: bool, tools: Any) -> Wait:
    """gpt-oss: messages with a channel (analysis, commentary, final), and calls to functions."""
    turns = ("<|end|>", "<|return|>", "<|call|>", "<|start|>")
    while True:
        header, mark = yield from reader.collect(("<|message|>", *turns))
        if mark != "<|message|>":
            if not mark:
                output.content(header if not header.startswith("<|") else "")
                return
            continue
        recipient, channel = _RECIPIENT.search(header), _CHANNEL.search(header)
        if recipient is not None and recipient[1] != "all":
            output.call(recipient[1].removeprefix("functions."))
            write: Callable[[str], None] = output.arguments
        else:
            kind = "reasoning" if channel is not None and channel[1] == "analysis" else "content"
            output.separate(kind)
            write = output.reasoning if kind == "reasoning" else output.content
        ended = yield from reader.until(turns, write)
        output.end_call()
        if not ended:
            return


FORMATS = {
    "deepseek": deepseek,
    "harmony": harmony,
    "hermes": hermes,
    "llama3": llama3,
    "mistral": mistral,
}
_THOUGHTS = ("<think>", "</think>")
# What a format reads of an answer: these may be special tokens of a vocabulary.
MARKS = {
    "deepseek": frozenset((*_THOUGHTS, *_CALLS, *_CALL, _SEPARATOR)),
    "harmony": frozenset(
        f"<|{name}|>"
        for name in ("start", "channel", "message", "constrain", "end", "return", "call")
    ),
    "hermes": frozenset((*_THOUGHTS, "<tool_call>", "</tool_call>")),
    "llama3": frozenset((*_THOUGHTS, "<|python_tag|>")),
    "mistral": frozenset(
        (*_THOUGHTS, "[THINK]", "[/THINK]", "[TOOL_CALLS]", "[CALL_ID]", "[ARGS]")
    ),
}
# Texts in the templates of a format, the more special ones first.
_MARKS = (
    ("<|channel|>", "harmony"),
    ("\uff5cDSML\uff5c", "deepseek"),
    (_CALL[0], "deepseek"),
    ("[TOOL_CALLS]", "mistral"),
    ("<tool_call>", "hermes"),
    ("<|start_header_id|>", "llama3"),
    ("[INST]", "mistral"),
    ("<\uff5cAssistant\uff5c>", "deepseek"),
)


def format_of(template: str) -> str:
    """The format of a template's models; "hermes" where none is recognised."""
    return next((name for mark, name in _MARKS if mark in template), "hermes")
