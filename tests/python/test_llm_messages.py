"""llm.MessageParser: texts of the five formats to messages, whole and in pieces."""

import itertools
import json

import chat_templates as chats
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernwright as kw
from kernwright import llm

CITY = {"city": 'K\u00f6ln "{Mitte}" \\ ]', "days": [1, 2.5, None], "deep": {"a": {"b": []}}}
ARGUMENTS = json.dumps(CITY, ensure_ascii=False)
BEGIN, END = "<\uff5ctool\u2581call\u2581begin\uff5c>", "<\uff5ctool\u2581call\u2581end\uff5c>"
MANY = "<\uff5ctool\u2581calls\u2581begin\uff5c>", "<\uff5ctool\u2581calls\u2581end\uff5c>"
SEP, STOP = "<\uff5ctool\u2581sep\uff5c>", "<\uff5cend\u2581of\u2581sentence\uff5c>"
DSML = "\uff5cDSML\uff5c"

# Format, text, content, reasoning, calls.
CASES = {
    "hermes": (
        "hermes",
        f'<think>\nHm.\n</think>\n\nLook:\n<tool_call>\n{{"name": "weather", "arguments": '
        f'{ARGUMENTS}}}\n</tool_call>\n<tool_call>\n{{"name": "now", "arguments": {{}}}}\n'
        "</tool_call><|im_end|>",
        ("Look:", "Hm.", [("weather", CITY), ("now", {})]),
    ),
    "hermes, other orders": (
        "hermes",
        f'<tool_call>{{"arguments": {ARGUMENTS}, "name": "weather"}}</tool_call>'
        '<tool_call>{"name": "none"}</tool_call>'
        '<tool_call>{"id": "x", "name": "text", "arguments": "{\\"a\\": 1}", "more": 3}'
        "</tool_call>",
        ("", "", [("weather", CITY), ("none", {}), ("text", {"a": 1})]),
    ),
    "hermes, tags": (
        "hermes",
        "<tool_call>\n<function=f>\n<parameter=a>\n12\n</parameter>\n<parameter=s>\n12\n"
        "</parameter>\n<parameter=t>\n<b>\n  two lines\n</parameter>\n<parameter=n>\nnull\n"
        "</parameter>\n</function>\n</tool_call>",
        ("", "", [("f", {"a": 12, "s": "12", "t": "<b>\n  two lines", "n": None})]),
    ),
    "llama3": (
        "llama3",
        f'{{"name": "weather", "parameters": {ARGUMENTS}}}; {{"name": "now", "parameters": {{}}}}'
        "<|eot_id|>",
        ("", "", [("weather", CITY), ("now", {})]),
    ),
    "llama3, tag": (
        "llama3",
        f'Wait. <|python_tag|>{{"type": "function", "name": "weather", "parameters": {ARGUMENTS}}}'
        "<|eom_id|>",
        ("Wait.", "", [("weather", CITY)]),
    ),
    "mistral": (
        "mistral",
        f'[TOOL_CALLS] [{{"name": "weather", "arguments": {ARGUMENTS}, "id": "abcdefghi"}}, '
        '{"name": "now", "arguments": {}}]</s>',
        ("", "", [("weather", CITY), ("now", {})]),
    ),
    "mistral, new": (
        "mistral",
        f"[THINK]Hm.[/THINK]I look.[TOOL_CALLS]weather[ARGS]{ARGUMENTS}"
        "[TOOL_CALLS]now[CALL_ID]abcdefghi[ARGS]{}</s>",
        ("I look.", "Hm.", [("weather", CITY), ("now", {})]),
    ),
    "harmony": (
        "harmony",
        "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>analysis<|message|>"
        "So.<|end|><|start|>assistant<|channel|>commentary<|message|>I look.<|end|>"
        "<|start|>assistant<|channel|>commentary to=functions.weather <|constrain|>json<|message|>"
        f"{ARGUMENTS}<|call|>",
        ("I look.", "Hm.\nSo.", [("weather", CITY)]),
    ),
    "harmony, recipient first": (
        "harmony",
        f" to=functions.weather<|channel|>commentary json<|message|>{ARGUMENTS}<|call|>",
        ("", "", [("weather", CITY)]),
    ),
    "harmony, final": (
        "harmony",
        "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>4"
        "<|return|>",
        ("4", "Hm.", []),
    ),
    "deepseek, block": (
        "deepseek",
        f"<think>\nHm.\n</think>\n\nI look.{MANY[0]}{BEGIN}function{SEP}weather\n```json\n"
        f"{ARGUMENTS}\n```{END}\n{BEGIN}function{SEP}now\n```json\n{{}}\n```{END}{MANY[1]}{STOP}",
        ("I look.", "Hm.", [("weather", CITY), ("now", {})]),
    ),
    "deepseek, bare": (
        "deepseek",
        f"{MANY[0]}{BEGIN}weather{SEP}{ARGUMENTS}{END}{BEGIN}now{SEP}{{}}{END}{MANY[1]}{STOP}",
        ("", "", [("weather", CITY), ("now", {})]),
    ),
    "deepseek, tags": (
        "deepseek",
        f'I look.\n\n<{DSML}function_calls>\n<{DSML}invoke name="weather">\n<{DSML}parameter '
        f'name="city" string="true">12</{DSML}parameter>\n<{DSML}parameter name="days" '
        f'string="false">[1, 2]</{DSML}parameter>\n</{DSML}invoke>\n<{DSML}invoke name="now">\n'
        f"</{DSML}invoke>\n</{DSML}function_calls>{STOP}",
        ("I look.", "", [("weather", {"city": "12", "days": [1, 2]}), ("now", {})]),
    ),
}
TOOLS = [{"function": {"name": "f", "parameters": {"properties": {"s": {"type": "string"}}}}}]


def told(message):
    """Content, reasoning, and the calls of a message."""
    assert message["role"] == "assistant"
    calls = [each["function"] for each in message.get("tool_calls", [])]
    return (
        message["content"],
        message.get("reasoning_content", ""),
        [(each["name"], each["arguments"]) for each in calls],
    )


def joined(parts):
    """The same from parts, as a server's client joins them."""
    texts, calls = {"content": "", "reasoning": ""}, []
    for part in parts:
        if part.kind == "tool_call":
            assert part.call == len(calls) and part.id and part.name and not part.text
            calls.append([part.name, ""])
        elif part.kind == "arguments":
            assert part.text and part.call == len(calls) - 1
            calls[part.call][1] += part.text
        else:
            assert part.text
            texts[part.kind] += part.text
    return texts["content"], texts["reasoning"], [(name, json.loads(a)) for name, a in calls]


def in_pieces(text, cuts, format, **options):
    """The parser and its parts for a text cut at some places."""
    parser = llm.MessageParser(format, **options)
    places = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    parts = []
    for begin, end in itertools.pairwise(places):
        parts += parser.push(text[begin:end])
    return parser, parts + parser.finish()


@pytest.mark.parametrize("name", CASES)
def test_whole_texts(name):
    format, text, expected = CASES[name]
    tools = TOOLS if "<function=" in text else None
    assert told(llm.parse_message(text, format, tools=tools)) == expected
    parser, parts = in_pieces(text, range(len(text)), format, tools=tools)  # each character alone
    assert told(parser.message) == joined(parts) == expected


@pytest.mark.parametrize("name", CASES)
@given(st.lists(st.integers(0, 1000), max_size=8), st.integers(0, 1000))
@settings(max_examples=40, deadline=None)
def test_pieces_do_not_matter(name, cuts, end):
    """Also for texts that are cut off."""
    format, text, _ = CASES[name]
    text = text[: end % (len(text) + 1)] if end % 3 else text
    whole, _ = in_pieces(text, [], format)
    parser, parts = in_pieces(text, cuts, format)
    assert told(parser.message) == told(whole.message)
    assert "".join(p.text for p in parts if p.kind == "content") == parser.message["content"]


FRAGMENTS = sorted({
    *("<think>", "</think>", "<tool_call>", "</tool_call>", "[TOOL_CALLS]", "[ARGS]", "[CALL_ID]"),
    *("<|python_tag|>", "<|channel|>final", "<|message|>", "<|end|>", "<|call|>", "<|start|>"),
    *("<function=f>", "<parameter=a>", "</parameter>", "</function>", "to=functions.f", "[THINK]"),
    *(BEGIN, END, SEP, *MANY, "function", "```json", "```", f"<{DSML}function_calls>", "[/THINK]"),
    *(f'<{DSML}invoke name="f">', f"</{DSML}invoke>", f"</{DSML}function_calls>", "<|eot_id|>"),
    *('{"name": "f", "arguments": ', '"name"', ":", ",", "{", "}", "[", "]", '"', "\\\\", "null"),
    *('{"a": 1}', " ", "\n", ";", "text", "<", "</s>", '{"name": "f", "parameters": {}}'),
})  # fmt: skip


@pytest.mark.parametrize("format", ["deepseek", "harmony", "hermes", "llama3", "mistral"])
@given(st.lists(st.sampled_from(FRAGMENTS), max_size=14), st.lists(st.integers(0, 500), max_size=9))
@settings(max_examples=200, deadline=None)
def test_any_text_is_a_message(format, fragments, cuts):
    """No text raises, and its pieces do not matter. Calls have names and arguments."""
    text = "".join(fragments)
    whole, _ = in_pieces(text, [], format)
    parser, parts = in_pieces(text, cuts, format)
    assert told(parser.message) == told(whole.message)
    begun = [part.call for part in parts if part.kind == "tool_call"]
    assert begun == list(range(len(begun)))
    for call in parser.message.get("tool_calls", []):
        assert call["function"]["name"] and call["function"]["arguments"] != ""
        pieces = [part for part in parts if part.kind == "arguments"]
        assert {part.call for part in pieces} == set(begun)


TEXTS = ["", " ", "Hi!", " a leading space\n", "x < 3 and [1] {2} <b>", "a\n\n  b \n", "\u20ac <"]


@pytest.mark.parametrize("format", ["hermes", "llama3", "mistral", "deepseek"])
@pytest.mark.parametrize("text", TEXTS)
def test_plain_texts_stay_as_they_are(format, text):
    for cuts in ([], range(len(text))):
        parser, parts = in_pieces(text, cuts, format)
        assert parser.message == {"role": "assistant", "content": text}
        assert "".join(part.text for part in parts) == text


@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("hermes", "See <tool_call>no JSON</tool_call> there"),
        ("hermes", '<tool_call>{"name": 3, "arguments": {}}</tool_call>'),
        ("hermes", '<tool_call>{"arguments": {}}</tool_call>'),
        ("hermes", '<tool_call> {"name": "a", "argum'),
        ("hermes", '<tool_call>{"name": "a", "arguments": [1]}</tool_call>'),
        ("hermes", "<tool_call>\n<no function></tool_call>"),
        ("llama3", '{"name": "Bob", "age": 3}'),
        ("llama3", '{"name": "Bob"}'),
        ("llama3", " {a: 1}"),
        ("llama3", "{"),
        ("mistral", "[TOOL_CALLS]no call"),
        ("mistral", "[TOOL_CALLS]two words[ARGS]{}"),
        ("deepseek", f"{BEGIN}no separator{END}"),
    ],
)
def test_what_is_no_call_is_content(format, text):
    for cuts in ([], range(len(text))):
        parser, parts = in_pieces(text, cuts, format)
        message = parser.message
        assert "tool_calls" not in message and message["content"].strip() == text.strip()
        assert {part.kind for part in parts} == {"content"}


def test_tools_decide_what_is_a_call_of_llama3():
    text = '{"name": "g", "parameters": {}}'
    assert told(llm.parse_message(text, "llama3"))[2] == [("g", {})]
    assert told(llm.parse_message(text, "llama3", tools=TOOLS)) == (text, "", [])
    odd = [3, {}, {"function": None}, {"name": "g", "parameters": 3}]
    assert told(llm.parse_message(text, "llama3", tools=odd))[2] == [("g", {})]


def test_arguments_come_as_they_are_written():
    """A call is announced before its arguments are complete."""
    parser = llm.MessageParser("hermes")
    parts = parser.push('<tool_call>\n{"name": "f", "arguments": {"a": "lo')
    assert [part.kind for part in parts] == ["tool_call", "arguments"]
    assert parts[1].text == '{"a": "lo'
    assert [part.text for part in parser.push('ng"')] == ['ng"']
    assert parser.finish() == []  # cut off
    assert parser.message["tool_calls"][0]["function"]["arguments"] == '{"a": "long"'
    with pytest.raises(kw.InvalidArgument, match="has ended"):
        parser.push("x")


def test_ids_of_calls():
    """Those of the model, if they stand before the arguments; else random ones."""
    text = CASES["mistral, new"][1]
    ids = [call["id"] for call in llm.parse_message(text, "mistral")["tool_calls"]]
    assert ids[1] == "abcdefghi" and len(ids[0]) == 9 and ids[0].isalnum()
    assert llm.parse_message(text, "mistral")["tool_calls"][0]["id"] != ids[0]
    text = '[TOOL_CALLS][{"id": "123456789", "name": "f", "arguments": {}}]'
    assert llm.parse_message(text, "mistral")["tool_calls"][0]["id"] == "123456789"


def test_reasoning_that_the_prompt_has_begun():
    for format in ("hermes", "deepseek"):
        prompt = "<|im_start|>assistant\n<think>\n"
        message = llm.parse_message("Hm.\n</think>\n\n4", format, prompt=prompt)
        assert told(message) == ("4", "Hm.", [])
        assert told(llm.parse_message("Hm", format, prompt=prompt)) == ("", "Hm", [])
    assert told(llm.parse_message("Hm[/THINK]4", "mistral", prompt="[THINK]"))[:2] == ("4", "Hm")


@pytest.mark.parametrize(("style", "format"), [("hermes", "hermes"), ("llama3", "llama3")])
def test_what_a_template_writes_is_read_back(style, format):
    pytest.importorskip("jinja2")
    template = llm.ChatTemplate(chats.STYLES[style], bos_token="<s>")
    assert llm.MessageParser.format_of(template.text) == format
    user = [chats.USER]
    begun = template.render(user, chats.TOOLS, add_generation_prompt=True)
    for message in (chats.CALL, chats.ANSWER, chats.REASON):
        text = template.render([*user, message], chats.TOOLS)[len(begun) :]
        found = llm.parse_message(text, format, tools=chats.TOOLS, prompt=begun)
        again = template.render([*user, found], chats.TOOLS)[len(begun) :]
        assert again == text
        assert found["content"] == message["content"]


def test_formats_by_template():
    for text, format in (
        ("<|start|>assistant<|channel|>final", "harmony"),
        (f"x{BEGIN}y", "deepseek"),
        (f"'{DSML}'", "deepseek"),
        ("[AVAILABLE_TOOLS][TOOL_CALLS]", "mistral"),
        ("<|im_start|><tool_call>", "hermes"),
        ("<|start_header_id|>", "llama3"),
        ("nothing known", "hermes"),
    ):
        assert llm.MessageParser.format_of(text) == format
    with pytest.raises(kw.InvalidArgument, match="format is 'x'; known are deepseek, harmony"):
        llm.MessageParser("x")
