"""Grammars of tool calls: random texts under them are calls, as the parser and jsonschema judge."""

import json

import jsonschema
import numpy as np
import pytest
import tiny_tokenizers as tiny
from test_llm_forms import random_text, tokens_in

from kernwright import llm
from kernwright.errors import InvalidArgument
from kernwright.llm._guide.calls import call_grammar
from kernwright.llm._guide.compiler import compiler_of
from kernwright.llm._guide.form import form_of

FUNCTIONS = [
    {
        "name": "get_weather",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"enum": ["Rome", 'a"}]</tool_call>', "\u00e9"]},
                "days": {"$ref": "#/$defs/days"},
            },
            "required": ["city", "days"],
            "additionalProperties": False,
            "$defs": {"days": {"type": "integer", "minimum": 0, "maximum": 9}},
        },
    },
    {"name": "now.utc-1"},
    {"name": "flag", "parameters": {"properties": {"on": {"type": "boolean"}}, "required": ["on"],
                                    "additionalProperties": False}},
]  # fmt: skip
TOOLS = [{"type": "function", "function": each} for each in FUNCTIONS]
# Formats, and templates that choose among their forms.
LAYOUTS = [
    ("hermes", ""), ("llama3", ""), ("mistral", ""), ("mistral", "[ARGS]"), ("harmony", ""),
    ("deepseek", ""), ("deepseek", "```json"),
]  # fmt: skip


@pytest.fixture(scope="module", params=["no marks", "marks"])
def tokenizer(request, tmp_path_factory):
    """One that has no mark of the formats, and one in which some of them are special tokens."""
    pairs = tiny.byte_level()
    if request.param == "marks":
        marks = ("[TOOL_CALLS]", "[ARGS]", "</think>", "<|channel|>", "<\uff5ctool\u2581sep\uff5c>")
        pairs.add_special_tokens(list(marks))
    folder = tiny.folder_of(
        tmp_path_factory.mktemp("tokenizer"), pairs, tokenizer_config={"eos_token": "</s>"}
    )
    return llm.Tokenizer(folder)


def made(tokenizer, format, seed, functions=FUNCTIONS, **more):
    """A whole text under the grammar, and the message that it is."""
    grammar = call_grammar(format, functions, special=tokenizer.special_tokens, **more)
    text, is_whole = random_text(tokenizer, seed, 3000, grammar=grammar)
    assert is_whole, text
    prompt = more.get("prompt", "")
    return text, llm.parse_message(text, format, tools=TOOLS, prompt=prompt)


def check(calls):
    parameters = {each["name"]: each.get("parameters", {}) for each in FUNCTIONS}
    for call in calls:
        function = call["function"]
        jsonschema.validate(function["arguments"], parameters[function["name"]])
        if function["name"] == "now.utc-1":
            assert function["arguments"] == {}
    return [call["function"]["name"] for call in calls]


@pytest.mark.parametrize(("format", "template"), LAYOUTS)
def test_texts_are_one_call_with_valid_arguments(tokenizer, format, template):
    names = set()
    for seed in range(12):
        _, message = made(tokenizer, format, seed, template=template)
        assert message["content"] == ""
        (name,) = check(message["tool_calls"])
        names.add(name)
    assert names == {each["name"] for each in FUNCTIONS}


@pytest.mark.parametrize(("format", "template"), LAYOUTS)
def test_several_calls_where_the_format_has_them(tokenizer, format, template):
    counts = set()
    for seed in range(6):
        _, message = made(tokenizer, format, seed, template=template, several=True)
        counts.add(len(check(message["tool_calls"])))
    assert (counts == {1}) if format == "harmony" else (max(counts) > 1 and min(counts) >= 1)


@pytest.mark.parametrize("format", ["hermes", "deepseek", "mistral"])
def test_reasoning_that_a_prompt_begins_ends_before_the_call(tokenizer, format):
    mark, closing = ("[THINK]", "[/THINK]") if format == "mistral" else ("<think>", "</think>")
    prompt, reasoning = f"Hi{mark}\n", "A call? <tool_call> {"
    special = tokenizer.special_tokens
    grammar = call_grammar(format, FUNCTIONS[2:], special=special, prompt=prompt)
    size = len(tokenizer)
    guide = compiler_of(tokenizer, size, tokenizer.eos).compile(form_of({"grammar": grammar}))
    state, tokens = guide.start(), []
    mask = state.advance(None)
    for token in tokenizer.encode(reasoning + closing, add_special_tokens=False):
        assert token in tokens_in(mask, size)
        tokens.append(token)
        mask = state.advance(token)
    draw = np.random.default_rng(1)
    while mask is not None and len(tokens) < 500:
        token = int(draw.choice(tokens_in(mask, size)))
        tokens += [] if token in tokenizer.eos else [token]
        mask = state.advance(token)
    assert mask is None
    text = tokenizer.decode(tokens, skip_special_tokens=False)
    message = llm.parse_message(text, format, tools=TOOLS, prompt=prompt)
    assert message["reasoning_content"] == reasoning
    assert check(message["tool_calls"]) == ["flag"]


def test_names_and_parameters_that_cannot_be_forced():
    for name in ("", "a b", 'a"', "a\n", "\u00e9"):
        with pytest.raises(InvalidArgument, match="letters, digits"):
            call_grammar("hermes", [{"name": name}])
    with pytest.raises(InvalidArgument, match="are an object"):
        call_grammar("hermes", [{"name": "a", "parameters": {"type": "string"}}])
    with pytest.raises(InvalidArgument, match="as JSON"):
        call_grammar("hermes", [{"name": "a", "parameters": {"x": float("nan")}}])


def test_schemas_keep_their_own_definitions(tokenizer):
    """Two functions whose $defs have the same names."""
    functions = [
        {"name": name, "parameters": {
            "type": "object", "properties": {"x": {"$ref": "#/$defs/x"}}, "required": ["x"],
            "additionalProperties": False, "$defs": {"x": {"const": value}}}}
        for name, value in (("a", 1), ("b", [2]))
    ]  # fmt: skip
    for seed in range(6):
        text, _ = made(tokenizer, "hermes", seed, functions)
        found = json.loads(text.removeprefix("<tool_call>\n").removesuffix("\n</tool_call>"))
        assert found["arguments"] == {"x": 1 if found["name"] == "a" else [2]}
