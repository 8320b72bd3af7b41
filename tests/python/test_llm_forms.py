"""Compiled forms of texts: random texts under their masks are of the form, as others judge."""

import contextlib
import json
import re
import threading
import time

import jsonschema
import numpy as np
import pytest
import tiny_tokenizers as tiny

from kernwright import llm
from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.llm._guide import compiler
from kernwright.llm._guide.compiler import compiler_of
from kernwright.llm._guide.form import form_of

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 12},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "tags": {"type": "array", "items": {"enum": ["a", 'b"\\', "\u00e9"]}, "maxItems": 3},
        "mail": {"anyOf": [{"type": "null"}, {"type": "boolean"}]},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}
SCHEMAS = [
    PERSON,
    {"type": "array", "items": {"type": "integer", "multipleOf": 7}, "minItems": 1, "maxItems": 4},
    {"type": "string", "pattern": "^[a-f]{2}-\\d+x$", "maxLength": 20},
    {"const": {"a": [1, None, True], "b": '\u20ac"\n'}},
    {"type": "string", "format": "date"},
    {"type": "number", "exclusiveMinimum": -2, "maximum": 3.5},
    {
        "oneOf": [
            {"type": "integer", "maximum": 9, "minimum": 0},
            {"type": "string", "maxLength": 3},
        ]
    },
    {
        "$defs": {
            "tree": {
                "type": "object",
                "properties": {
                    "value": {"type": "boolean"},
                    "left": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/tree"}]},
                },
                "required": ["value", "left"],
                "additionalProperties": False,
            }
        },
        "$ref": "#/$defs/tree",
    },
    {"type": "object", "additionalProperties": {"type": "boolean"}, "maxProperties": 2},
]
REGEXES = [
    r"[0-9]{3}-[a-z]+",
    r"(yes|no)( *!){0,3}",
    "\u00e9+\u20ac?",
    r"a|ab|abc",
    r"\U0001f600{2}",
]
BRACKETS = r"""
start: group+
group: "(" group* ")" | "[" /[xy]{0,3}/ "]"
"""


def balanced(text):
    text = re.sub(r"\[[xy]{0,3}\]", "", text)
    while "()" in text:
        text = text.replace("()", "")
    return text == ""


@pytest.fixture(scope="module", params=["pairs", "gguf pairs", "gguf pieces"])
def tokenizer(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizer")
    if request.param == "gguf pieces":
        return llm.Tokenizer(
            tiny.write_gguf(folder / "m.gguf", tiny.gguf_of_pieces(tiny.scored_pieces()))
        )
    pairs = tiny.byte_level()
    if request.param == "pairs":
        return llm.Tokenizer(tiny.folder_of(folder, pairs, tokenizer_config={"eos_token": "</s>"}))
    return llm.Tokenizer(tiny.write_gguf(folder / "m.gguf", tiny.gguf_of_pairs(pairs)))


def tokens_in(mask, vocabulary):
    assert len(mask) == (vocabulary + 31) // 32 * 4
    bits = np.unpackbits(np.frombuffer(mask, np.uint8), bitorder="little")
    assert not bits[vocabulary:].any()
    return np.flatnonzero(bits)


def random_text(tokenizer, seed, most=400, vocabulary=None, **options):
    """A text of tokens drawn evenly from the masks, and whether it is complete."""
    vocabulary = vocabulary or len(tokenizer)
    guide = compiler_of(tokenizer, vocabulary, tokenizer.eos).compile(form_of(options))
    state, draw, tokens = guide.start(), np.random.default_rng(seed), []
    mask = state.advance(None)
    while mask is not None and len(tokens) < most:
        allowed = tokens_in(mask, vocabulary)
        # Closing brackets and ends more often, so that texts end.
        ends = [token for token in allowed if token in tokenizer.eos]
        token = int(draw.choice(ends if ends and draw.random() < 0.3 else allowed))
        if token in tokenizer.eos:
            return text_of(tokenizer, tokens, True), True
        tokens.append(token)
        mask = state.advance(token)
    return text_of(tokenizer, tokens, mask is None), mask is None


def text_of(tokenizer, tokens, is_whole):
    """A text that is cut may end within a character."""
    data = b"".join(tokenizer.bytes(token) for token in tokens)
    return data.decode(errors="strict" if is_whole else "ignore")


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda each: str(each)[:40])
def test_texts_of_a_schema_validate(tokenizer, schema):
    complete = 0
    for seed in range(12):
        text, is_whole = random_text(tokenizer, seed, schema=schema)
        if is_whole:
            jsonschema.validate(json.loads(text), schema, format_checker=jsonschema.FormatChecker())
            complete += 1
    assert complete >= 3


@pytest.mark.parametrize("regex", REGEXES)
def test_texts_of_a_regex_match_it(tokenizer, regex):
    for seed in range(8):
        text, is_whole = random_text(tokenizer, seed, regex=regex)
        assert not is_whole or re.fullmatch(regex, text), text


def test_texts_of_a_grammar_are_of_its_language(tokenizer):
    found = [random_text(tokenizer, seed, grammar=BRACKETS) for seed in range(12)]
    whole = [text for text, is_whole in found if is_whole]
    assert len(set(whole)) > 2 and all(balanced(text) for text in whole)


CHOICES = ["red", "red wine", 'a "b"\\n\n', "\u4f60\u597d \U0001f600", "red"]


def test_texts_of_choices_are_among_them(tokenizer):
    found = {random_text(tokenizer, seed, choices=CHOICES) for seed in range(40)}
    assert found == {(text, True) for text in CHOICES}


def test_a_schema_may_be_a_text(tokenizer):
    same = [random_text(tokenizer, 5, schema=each) for each in (PERSON, json.dumps(PERSON))]
    assert same[0] == same[1]


def test_whitespace_of_json_is_bounded(tokenizer):
    schema = {"type": "array", "items": {"type": "null"}, "minItems": 2, "maxItems": 2}
    state = compiler_of(tokenizer, len(tokenizer), tokenizer.eos).compile(
        form_of({"schema": schema})
    )
    state = state.start()
    ids = {tokenizer.bytes(token): token for token in range(len(tokenizer))}
    mask = state.advance(None)
    for byte in b"[\n" + b" " * 40:
        assert ids[bytes([byte])] in tokens_in(mask, len(tokenizer))
        mask = state.advance(ids[bytes([byte])])
    assert {tokenizer.bytes(token)[:1] for token in tokens_in(mask, len(tokenizer))} == {b"n"}


def test_tokens_behind_those_of_the_tokenizer_are_never_allowed(tokenizer):
    for padding in (1, 31, 32, 70):
        for seed in range(3):
            text, is_whole = random_text(
                tokenizer, seed, vocabulary=len(tokenizer) + padding, schema=PERSON
            )
            assert not is_whole or json.loads(text)["name"]


def test_without_a_token_that_ends_texts_a_form_ends_itself(tokenizer):
    made = compiler_of(tokenizer, len(tokenizer), ())
    state = made.compile(form_of({"choices": ["a"]})).start()
    (token,) = tokens_in(state.advance(None), len(tokenizer))
    assert tokenizer.bytes(token) == b"a" and state.advance(int(token)) is None
    state, last = made.compile(form_of({"regex": "a+"})).start(), None
    for _ in range(5):
        tokens = tokens_in(state.advance(last), len(tokenizer))
        assert token in tokens and not set(tokens) & set(tokenizer.eos)
        last = int(token)
    with pytest.raises(InvalidArgument, match="only the empty text"):
        made.compile(form_of({"regex": ""}))


def test_a_vocabulary_without_some_bytes(tmp_path):
    """Words of a few letters: no text with others can be written."""
    pieces = [("<unk>", 0.0, 2), ("<s>", 0.0, 3), ("</s>", 0.0, 3), ("ab", -1.0, 1)]
    metadata = tiny.gguf_of_pieces(pieces)
    few = llm.Tokenizer(tiny.write_gguf(tmp_path / "m.gguf", metadata))
    assert random_text(few, 0, regex="(ab){2}") == ("abab", True)
    for regex in ("c", "abc", "aba"):
        with pytest.raises((InvalidArgument, llm.ModelError)):
            random_text(few, 0, regex=regex)


def test_a_token_outside_of_the_form_fails(tokenizer):
    compiled = compiler_of(tokenizer, len(tokenizer), tokenizer.eos)
    state = compiled.compile(form_of({"choices": ["abc"]})).start()
    state.advance(None)
    with pytest.raises(llm.ModelError, match="choices failed"):
        state.advance(tokenizer.encode("z", add_special_tokens=False)[-1])
    other = compiled.compile(form_of({"choices": ["abc"]})).start()  # its own state
    assert other.advance(None) is not None


WRONG = [
    ({"schema": {"type": "frob"}}, "frob"),
    ({"schema": {"not": {}}}, "not"),
    ({"schema": {"allOf": [{"type": "integer"}, {"type": "string"}]}}, "nsatisfiable"),
    ({"schema": {"$ref": "http://127.0.0.1:1/x"}}, "127.0.0.1"),
    ({"schema": {"type": "string", "pattern": "(?=a)b"}}, "look-ahead"),
    ({"schema": '{"type": '}, "no JSON"),
    ({"schema": "[1]"}, "object"),
    ({"schema": {"a": {1, 2}}}, "JSON"),
    ({"schema": {"minimum": float("nan")}}, "JSON"),
    ({"schema": {"type": "integer", "multipleOf": 1000003}}, "remainders"),
    ({"schema": {"allOf": [{"multipleOf": 331}, {"multipleOf": 337}]}}, "remainders"),
    ({"grammar": 'start: %json {"type": "integer", "\\u006dultipleOf": 1000003}'}, "remainders"),
    ({"regex": "[0-9"}, "unclosed"),
    ({"regex": "a" * 300_000}, "characters"),
    ({"regex": "\ud800"}, "surrogate"),
    ({"grammar": "start: other"}, "other"),
    ({"grammar": 'start: start "a"'}, "grammar"),
    ({"grammar": "("}, "grammar"),
    ({"choices": []}, "empty"),
]


@pytest.mark.parametrize("options, message", WRONG, ids=lambda each: str(each)[:40])
def test_a_form_that_is_wrong_says_why(tokenizer, options, message):
    with pytest.raises(InvalidArgument, match=re.escape(message)):
        compiler_of(tokenizer, len(tokenizer), tokenizer.eos).compile(form_of(options))


@pytest.mark.parametrize(
    "options",
    [
        {"schema": 5}, {"schema": ["a"]}, {"regex": b"a"}, {"grammar": {}}, {"choices": "ab"},
        {"choices": [1]}, {"choices": ["a"], "regex": "a"},
    ],
)  # fmt: skip
def test_forms_of_other_types_and_two_at_once_are_refused(options):
    with pytest.raises(ArgumentError):
        form_of(options)
    assert form_of({"schema": None, "regex": None}) is None


BOMBS = [
    {"regex": "((a{1,1000}){1,1000}){1,1000}"},
    {"regex": "(" * 5000 + "a" + ")" * 5000},
    {"schema": '{"properties":{"a":' * 3000 + "{}" + "}}" * 3000},
    {"schema": {"type": "string", "pattern": "(x+x+)+y(a|b)*a(a|b){12}", "maxLength": 3000}},
    {"grammar": "start: " + "(" * 50_000 + '"a"' + ")" * 50_000},
    {"schema": {"type": "array", "minItems": 10**5, "items": {"type": "string", "minLength": 999}}},
]


@pytest.mark.parametrize("options", BOMBS, ids=lambda each: str(each)[:30])
def test_forms_made_to_cost_much_are_refused_or_cheap(tokenizer, options):
    begin = time.perf_counter()
    with contextlib.suppress(InvalidArgument):
        compiler_of(tokenizer, len(tokenizer), tokenizer.eos).compile(form_of(options))
    assert time.perf_counter() - begin < 5


def test_a_compile_that_does_not_end_is_refused(tokenizer, monkeypatch):
    monkeypatch.setattr(compiler, "_SECONDS", 0.05)
    made, go_on = compiler_of(tokenizer, len(tokenizer), tokenizer.eos), threading.Event()
    monkeypatch.setattr(made, "_compiled", lambda form: go_on.wait(30))
    for number in range(4):
        with pytest.raises(InvalidArgument, match="longer than"):
            made.compile(form_of({"regex": f"slow{number}"}))
    with pytest.raises(InvalidArgument, match="4 others"):
        made.compile(form_of({"regex": "another"}))
    go_on.set()
    monkeypatch.undo()
    assert random_text(tokenizer, 1, regex="ab") == ("ab", True)


def test_one_compile_serves_many_texts_and_threads(tokenizer):
    made = compiler_of(tokenizer, len(tokenizer), tokenizer.eos)
    first = made.compile(form_of({"regex": "[ab]{9}"}))
    assert made.compile(form_of({"regex": "[ab]{9}"})) is first
    for number in range(70):
        made.compile(form_of({"choices": [f"x{number}"]}))
    assert made.compile(form_of({"regex": "[ab]{9}"})) is not first  # the oldest is given up
    texts = []
    threads = [
        threading.Thread(
            target=lambda seed=seed: texts.append(random_text(tokenizer, seed, regex="[ab]{9}"))
        )
        for seed in range(8)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(texts) == 8 and all(re.fullmatch("[ab]{9}", text) for text, _ in texts)
