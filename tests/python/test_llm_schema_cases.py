"""JSON schemas by keyword: what a form allows is what jsonschema says, or the schema is refused.

tests/data/schema_cases.json has values that are of each schema, and values that are not.
"""

import json
import pathlib

import jsonschema
import numpy as np
import pytest
import tiny_tokenizers as tiny

from kernwright import llm
from kernwright.errors import InvalidArgument
from kernwright.llm._guide.calls import call_grammar
from kernwright.llm._guide.compiler import compiler_of
from kernwright.llm._guide.form import Form, form_of

DATA = pathlib.Path(__file__).parents[1] / "data"
CASES = json.loads((DATA / "schema_cases.json").read_text())
USED = [case["schema"] for cases in CASES.values() for case in cases if "refused" not in case]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizer")
    config = {"eos_token": "</s>"}
    return llm.Tokenizer(tiny.folder_of(folder, tiny.byte_level(), tokenizer_config=config))


def validator(schema):
    checker = jsonschema.FormatChecker(["date", "email", "ipv4", "uuid"])
    return jsonschema.Draft202012Validator(schema, format_checker=checker)


def compiled(tokenizer, form):
    return compiler_of(tokenizer, len(tokenizer), tokenizer.eos).compile(form)


def tokens_in(mask):
    return np.flatnonzero(np.unpackbits(np.frombuffer(mask, np.uint8), bitorder="little"))


def may_write(tokenizer, guide, text):
    """Whether a form allows a text as a whole one, in short tokens: it is written byte by byte but
    where the form leaves no choice, which has one token alone."""
    state, rest = guide.start(), text.encode()
    mask = state.advance(None)
    while mask is not None and rest:
        allowed = [int(t) for t in tokens_in(mask) if rest.startswith(tokenizer.bytes(int(t)))]
        allowed = [token for token in allowed if tokenizer.bytes(token)]
        if not allowed:
            return False
        token = min(allowed, key=lambda each: len(tokenizer.bytes(each)))
        rest = rest[len(tokenizer.bytes(token)) :]
        mask = state.advance(token)
    return not rest and (mask is None or tokenizer.eos[0] in tokens_in(mask))


def random_text(tokenizer, guide, seed, most=300):
    """A text of tokens drawn evenly from the masks; None where it is cut."""
    state, draw, tokens = guide.start(), np.random.default_rng(seed), []
    mask = state.advance(None)
    while mask is not None and len(tokens) < most:
        allowed = tokens_in(mask)
        ends = [token for token in allowed if token in tokenizer.eos]
        token = int(draw.choice(ends if ends and draw.random() < 0.3 else allowed))
        if token in tokenizer.eos:
            mask = None
            break
        tokens.append(token)
        mask = state.advance(token)
    return None if mask is not None else tokenizer.decode(tokens)


@pytest.mark.parametrize("keyword", CASES)
def test_a_form_allows_what_the_schema_does(tokenizer, keyword):
    for case in CASES[keyword]:
        schema = case["schema"]
        if "refused" in case:  # never ignored
            with pytest.raises(InvalidArgument, match=case["refused"]):
                compiled(tokenizer, form_of({"schema": schema}))
            continue
        guide, judge = compiled(tokenizer, form_of({"schema": schema})), validator(schema)
        for value in case["valid"] + case["invalid"]:
            expected = json.dumps(value) in [json.dumps(each) for each in case["valid"]]
            if keyword != "format":  # jsonschema knows some of them
                assert judge.is_valid(value) == expected, (schema, value)
            text = json.dumps(value, ensure_ascii=False)
            assert may_write(tokenizer, guide, text) == expected, (schema, text)
        found = [random_text(tokenizer, guide, seed) for seed in range(5)]
        for text in found:
            if text is not None:
                judge.validate(json.loads(text))


def test_dates_of_arguments_of_calls_are_as_strict(tokenizer):
    parameters = {"type": "object", "properties": {"day": {"format": "date", "type": "string"}},
                  "required": ["day"], "additionalProperties": False}  # fmt: skip
    grammar = call_grammar("llama3", [{"name": "f", "parameters": parameters}])
    guide = compiled(tokenizer, Form("grammar", grammar))
    for day, is_one in (("2024-02-29", True), ("2023-02-29", False)):
        text = f'{{"name": "f", "parameters": {{"day": "{day}"}}}}'
        assert may_write(tokenizer, guide, text) == is_one


def test_every_text_that_ends_validates():
    """Of a model: texts are of their schemas, or are cut, and say so."""
    with llm.Engine(llm.load(DATA / "tiny_llama"), max_rows=16) as engine:
        requests = [
            (schema, engine.submit("x = ", schema=schema, max_tokens=40, temperature=1.0, seed=i))
            for i, schema in enumerate(USED)
        ]
        made = [(schema, request.result(300)) for schema, request in requests]
    reasons = [each.finish_reason for _, each in made]
    assert set(reasons) <= {"stop", "length"} and reasons.count("stop") > len(reasons) / 2
    for schema, each in made:
        if each.finish_reason == "stop":
            validator(schema).validate(json.loads(each.text))
