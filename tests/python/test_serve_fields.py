"""Fields that clients of other servers send: forms, salts, tokens, stops, truncation, deadlines."""

import json
import re

import numpy as np
import pytest
from serving import TINY, WritingEngine, serving

from kernwright import llm
from kernwright.serve.http.errors import ApiError, renamed
from kernwright.serve.http.limits import Limits
from kernwright.serve.texts.messages import _calls, _variables

CHAT, COMPLETE, RESPOND = "/v1/chat/completions", "/v1/completions", "/v1/responses"
HI = [{"role": "user", "content": "Hi"}]
PROMPT = "def f(x):"
RIGHT = {
    CHAT: {"messages": HI, "max_tokens": 40}, COMPLETE: {"prompt": PROMPT, "max_tokens": 40},
    RESPOND: {"input": "Hi", "max_output_tokens": 40},
}  # fmt: skip
SPECIAL = "a<|begin|>b"


@pytest.fixture(scope="module")
def engine():
    with llm.Engine(llm.load(TINY), max_rows=4) as engine:
        yield engine


@pytest.fixture(scope="module")
def client(engine):
    with serving(engine) as client:
        yield client


@pytest.fixture(scope="module")
def writer(engine):
    return WritingEngine(engine.model)


@pytest.fixture(scope="module")
def written(writer):
    with serving(writer, chat_format=None, limits=Limits(priorities=True, seconds=60)) as client:
        yield client


def text_of(path, answer):
    """The text of an answer, and whether it is whole."""
    if path == RESPOND:
        return answer["output"][0]["content"][0]["text"], answer["status"] == "completed"
    choice = answer["choices"][0]
    text = choice["text"] if path == COMPLETE else choice["message"]["content"]
    return text, choice["finish_reason"] == "stop"


def streamed(path, events):
    """The same of the events of a stream, and all tokens that they name."""
    text, tokens, last = "", [], None
    for event in events[:-1]:
        for choice in event["choices"]:
            shown = choice["text"] if path == COMPLETE else choice["delta"].get("content")
            text += shown or ""
            tokens += choice.get("token_ids", [])
            last = choice
    return text, tokens, last


SQL = """
root ::= "SELECT " column " from " table
column ::= "a" | "b"
table ::= "t_1" | "t_2"
"""
INTEGER = {"type": "integer", "minimum": 1, "maximum": 99}
FORMS = [
    ({"guided_regex": "[ab]{3}-[0-9]"}, re.compile("[ab]{3}-[0-9]").fullmatch),
    ({"guided_choice": ["red wine", "blue"]}, ["red wine", "blue"].__contains__),
    ({"guided_json": INTEGER}, lambda text: 1 <= json.loads(text) <= 99),
    ({"guided_json": json.dumps(INTEGER)}, lambda text: 1 <= json.loads(text) <= 99),
    ({"guided_grammar": SQL}, re.compile("SELECT [ab] from t_[12]").fullmatch),
    ({"guided_grammar": 'start: "x" /[yz]/'}, re.compile("x[yz]").fullmatch),
    ({"structured_outputs": {"regex": "[ab]{3}"}}, re.compile("[ab]{3}").fullmatch),
    ({"structured_outputs": {"choice": ["::= a"]}}, ["::= a"].__contains__),
    ({"structured_outputs": {"json": INTEGER}}, lambda text: 1 <= json.loads(text) <= 99),
    ({"structured_outputs": {"grammar": SQL}}, re.compile("SELECT [ab] from t_[12]").fullmatch),
]


@pytest.mark.parametrize(("fields", "is_right"), FORMS, ids=map(str, range(len(FORMS))))
def test_texts_have_the_form_that_is_asked_for(client, fields, is_right):
    for path, body in RIGHT.items():
        status, answer = client.post(path, {**body, **fields})
        assert status == 200, answer
        text, is_whole = text_of(path, answer)
        assert is_whole and is_right(text), text


def test_completions_take_a_response_format(client):
    schema = {"type": "json_schema", "json_schema": {"name": "n", "schema": INTEGER}}
    _, answer = client.post(COMPLETE, {**RIGHT[COMPLETE], "response_format": schema})
    text, is_whole = text_of(COMPLETE, answer)
    assert is_whole and 1 <= json.loads(text) <= 99
    events = client.events(COMPLETE, {**RIGHT[COMPLETE], "response_format": schema})
    text, _, last = streamed(COMPLETE, events)
    assert last["finish_reason"] == "stop" and 1 <= json.loads(text) <= 99
    for form in ({"type": "json_object"}, None):
        more = {"response_format": form} if form else {"structured_outputs": {"json_object": True}}
        _, answer = client.post(COMPLETE, {**RIGHT[COMPLETE], **more})
        assert text_of(COMPLETE, answer)[0].lstrip().startswith("{")
    plain = {"response_format": {"type": "text"}, "structured_outputs": {}}
    assert client.post(COMPLETE, {**RIGHT[COMPLETE], **plain})[0] == 200


WRONG = [
    ({"watermarking": 0}, "watermarking", "false"),
    ({"guided_regex": "[0-9"}, "guided_regex", "unclosed"),
    ({"guided_regex": "a" * 300_000}, "guided_regex", "300,000 characters, and 262,144"),
    ({"guided_regex": "\u0000("}, "guided_regex", "cannot be used"),
    ({"guided_choice": []}, "guided_choice", "one text at least"),
    ({"guided_choice": "ab"}, "guided_choice", "got `str`"),
    ({"guided_choice": [1]}, "guided_choice[0]", "got `int`"),
    ({"guided_json": "{"}, "guided_json", "no JSON"),
    ({"guided_json": "[]"}, "guided_json", "JSON object"),
    ({"guided_json": {"type": "frob"}}, "guided_json", "frob"),
    ({"guided_json": {"multipleOf": 1000003}}, "guided_json", "100,000 remainders"),
    ({"guided_grammar": "root ::= ((("}, "guided_grammar", "cannot be read"),
    ({"guided_grammar": "root ::= " + "(" * 9000}, "guided_grammar", "cannot be read"),
    ({"guided_grammar": "start: other"}, "guided_grammar", "other"),
    ({"structured_outputs": {"regex": "("}}, "structured_outputs.regex", "cannot be used"),
    ({"structured_outputs": {"structural_tag": "x"}}, "structured_outputs", "structural_tag"),
    ({"structured_outputs": {"regex": "a", "choice": ["b"]}}, "structured_outputs.choice",
     "exclude each other"),
    ({"guided_regex": "a", "structured_outputs": {"json": {}}}, "guided_regex",
     "structured_outputs.json and guided_regex exclude"),
    ({"priority": 2**31}, "priority", "from -2147483647 to 2147483647"),
    ({"timeout": 0}, "timeout", "at most 60 s, got 0"),
    ({"timeout": 61}, "timeout", "at most 60 s, got 61"),
    ({"timeout": True}, "timeout", "got `bool`"),
    ({"cache_salt": ""}, "cache_salt", "1 to 1024 characters, got 0"),
    ({"cache_salt": "a" * 1025}, "cache_salt", "got 1025"),
    ({"allowed_token_ids": []}, "allowed_token_ids", "one token at least"),
    ({"allowed_token_ids": [-1]}, "allowed_token_ids", "got -1"),
    ({"truncate_prompt_tokens": 0}, "truncate_prompt_tokens", "from 1 to 512"),
    ({"truncate_prompt_tokens": -2}, "truncate_prompt_tokens", "got -2"),
    ({"truncate_prompt_tokens": 513}, "truncate_prompt_tokens", "got 513"),
    ({"length_penalty": 2}, "length_penalty", "only be 1"),
    ({"use_beam_search": True}, "use_beam_search", "only be false"),
    ({"bad_words": [""]}, "bad_words", "texts with characters"),
    ({"bad_words": ["a"] * 1025}, "bad_words", "1024 texts at most, got 1025"),
    ({"bad_words": ["a" * 1025]}, "bad_words", "got 1025"),
    ({"bad_words": "a"}, "bad_words", "array"),
]  # fmt: skip
GENERATING = [
    ({"prompt_logprobs": -1}, "prompt_logprobs", "from 0 to 20"),
    ({"prompt_logprobs": 21}, "prompt_logprobs", "got 21"),
    ({"prompt_logprobs": 1, "stream": True}, "prompt_logprobs", "cannot be streamed"),
    ({"response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "frob"}}}},
     "response_format", "frob"),
    ({"response_format": {"type": "structural_tag"}}, "response_format.type", "structural_tag"),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "param", "message"), WRONG, ids=lambda each: str(each)[:40])
def test_wrong_fields_are_named(written, writer, fields, param, message):
    before = writer.requests
    for path, body in RIGHT.items():
        status, answer = written.post(path, {**body, **fields})
        error = answer["error"]
        assert status == 400 and error["param"] == param, error
        assert message in error["message"] and param.split("[")[0] in error["message"], error
    assert writer.requests == before


@pytest.mark.parametrize(("fields", "param", "message"), GENERATING, ids=lambda e: str(e)[:40])
def test_wrong_fields_of_texts_are_named(written, fields, param, message):
    for path in (CHAT, COMPLETE):
        status, answer = written.post(path, {**RIGHT[path], **fields})
        error = answer["error"]
        assert status == 400 and error["param"] == param and message in error["message"], error


def test_values_that_change_nothing_pass(written, writer):
    writer.text = "x"
    fields = {
        "length_penalty": 1.0, "use_beam_search": False, "early_stopping": False, "bad_words": [],
        "include_reasoning": True, "spaces_between_special_tokens": False, "request_id": "r",
        "truncation_side": "left", "documents": [], "chat_template": None,
    }  # fmt: skip
    for path, body in RIGHT.items():
        assert written.post(path, {**body, **fields})[0] == 200
    status, answer = written.post(CHAT, {**RIGHT[CHAT], "chat_template": "{{ x }}"})
    assert status == 400 and answer["error"]["param"] == "chat_template"


def test_a_priority_needs_leave(written, writer, client):
    writer.text = "x"
    for path, body in RIGHT.items():
        assert written.post(path, {**body, "priority": -3})[0] == 200
        assert writer.options[-1]["priority"] == 3  # the engine takes higher ones first
        assert written.post(path, {**body, "priority": 0})[0] == 200
        assert "priority" not in writer.options[-1]
        status, answer = client.post(path, {**body, "priority": 1})
        assert status == 400 and "--allow-priorities" in answer["error"]["message"]


def test_a_request_has_its_own_time(written, writer):
    writer.text, writer.seconds = "a b c d e f g h", 0.2
    try:
        for path, body in RIGHT.items():
            status, answer = written.post(path, {**body, "timeout": 0.3})
            assert status == 504 and answer["error"]["code"] == "timeout"
        events = written.events(COMPLETE, {**RIGHT[COMPLETE], "timeout": 0.5})
        assert events[-2]["error"]["code"] == "timeout" and events[-1] == "[DONE]"
    finally:
        writer.seconds = 0.0


def test_salts_keep_the_prefix_cache_apart(client):
    body = {"prompt": list(range(40, 240)), "max_tokens": 2, "temperature": 0}

    def cached(**salt):
        answer = client.post(COMPLETE, {**body, **salt})[1]
        return answer["usage"]["prompt_tokens_details"]["cached_tokens"], text_of(COMPLETE, answer)

    assert cached()[0] == 0
    plain = cached()
    assert plain[0] >= 100
    for salt in ("one", "two", "\u00e9\U0001f600"):
        first, again = cached(cache_salt=salt), cached(cache_salt=salt)
        assert first[0] == 0 and again == plain
    assert cached() == plain


def test_tokens_are_told(client, engine):
    tokenizer = engine.model.tokenizer
    for path in (CHAT, COMPLETE):
        body = {**RIGHT[path], "return_token_ids": True, "temperature": 0, "max_tokens": 6}
        _, answer = client.post(path, body)
        choice = answer["choices"][0]
        told = answer["prompt_token_ids"] if path == CHAT else choice["prompt_token_ids"]
        if path == CHAT:
            assert told == client.post("/tokenize", {"messages": HI})[1]["tokens"]
        else:
            assert told == tokenizer.encode(PROMPT)
        assert len(choice["token_ids"]) == answer["usage"]["completion_tokens"]
        assert tokenizer.decode(choice["token_ids"]) == text_of(path, answer)[0]
        events = client.events(path, body)
        assert streamed(path, events)[1] == choice["token_ids"]
        first = events[0] if path == CHAT else events[0]["choices"][0]
        assert first["prompt_token_ids"] == told
        assert str(events[1:]).count("prompt_token_ids") == 0
        plain = client.post(path, RIGHT[path])[1]
        assert "token_ids" not in str(plain)


def test_what_ended_a_text_is_told(written, writer):
    tokenizer, eos = writer.model.tokenizer, writer.model.eos[0]
    writer.text = "one two three"
    tokens = tokenizer.encode(writer.text, add_special_tokens=False)
    for path in (CHAT, COMPLETE):
        body = RIGHT[path]
        for fields, text, reason, tells in (
            ({}, writer.text, "stop", None),
            ({"stop": ["zzz", "thr"]}, "one two ", "stop", "thr"),
            ({"stop": "thr", "include_stop_str_in_output": True}, "one two thr", "stop", "thr"),
            ({"max_tokens": len(tokens) - 1}, tokenizer.decode(tokens[:-1]), "length", None),
            ({"stop_token_ids": [eos]}, writer.text, "stop", eos),
            ({"stop": "one", "min_tokens": len(tokens)}, writer.text, "stop", None),
        ):
            status, answer = written.post(path, {**body, **fields})
            assert status == 200, answer
            choice = answer["choices"][0]
            assert (text_of(path, answer)[0], choice["finish_reason"]) == (text, reason), fields
            assert choice["stop_reason"] == tells
            shown, _, last = streamed(path, written.events(path, {**body, **fields}))
            assert (shown, last["finish_reason"], last["stop_reason"]) == (text, reason, tells)
    assert writer.running == 0


def test_special_tokens_may_be_shown(written, writer):
    writer.text = SPECIAL
    end = writer.model.tokenizer.token(writer.model.eos[0])
    for path in (CHAT, COMPLETE):
        shown = {"skip_special_tokens": False}
        for fields, text in (
            ({}, "ab"), ({"skip_special_tokens": True}, "ab"), (shown, SPECIAL),
            ({**shown, "include_stop_str_in_output": True}, SPECIAL + end),
        ):  # fmt: skip
            body = {**RIGHT[path], **fields}
            assert text_of(path, written.post(path, body)[1])[0] == text
            assert streamed(path, written.events(path, body))[0] == text
    with serving(writer, chat_format="hermes") as parsed:
        for fields, text in (({}, "ab"), (shown, SPECIAL)):
            assert text_of(CHAT, parsed.post(CHAT, {**RIGHT[CHAT], **fields})[1])[0] == text


def test_stop_tokens_and_allowed_tokens_of_the_engine(client, engine):
    body = {**RIGHT[COMPLETE], "temperature": 0, "return_token_ids": True}
    tokens = client.post(COMPLETE, body)[1]["choices"][0]["token_ids"]
    text = engine.model.tokenizer.decode(tokens[:3])
    for fields, shown in (({}, engine.model.tokenizer.decode(tokens[:2])),
                          ({"include_stop_str_in_output": True}, text)):  # fmt: skip
        stop = {"stop_token_ids": [tokens[2]], **fields}
        if tokens[2] in tokens[:2]:
            pytest.fail("the text of this test has a token twice: choose another prompt")
        choice = client.post(COMPLETE, {**body, **stop})[1]["choices"][0]
        assert (choice["text"], choice["stop_reason"]) == (shown, tokens[2])
        assert choice["token_ids"] == tokens[:3]
    allowed = {"allowed_token_ids": [70, 71, 72], "max_tokens": 5, "temperature": 1}
    found = client.post(COMPLETE, {**body, **allowed})[1]["choices"][0]["token_ids"]
    assert len(found) == 5 and set(found) <= {70, 71, 72}
    for field, value, more in (
        ("allowed_token_ids", [5000], {}), ("stop_token_ids", [5000], {}),
        ("logit_bias", {"5000": 1}, {}), ("min_tokens", 2, {"guided_regex": "a"}),
        ("allowed_token_ids", [70], {"guided_regex": "\u20ac"}), ("min_tokens", 41, {}),
    ):  # fmt: skip
        status, answer = client.post(COMPLETE, {**body, field: value, **more})
        assert status == 400 and answer["error"]["param"] == field, answer


def test_bad_words_are_not_in_texts(client, engine):
    body = {**RIGHT[COMPLETE], "temperature": 0, "max_tokens": 12}
    tokenizer = engine.model.tokenizer
    tokens = tokenizer.encode(text_of(COMPLETE, client.post(COMPLETE, body)[1])[0])
    for count in (1, 2):
        found = [tokenizer.decode(tokens[i : i + count]) for i in range(len(tokens) - count)]
        word = next(each for each in found if each.strip())
        wanted = engine.submit(PROMPT, max_tokens=12, bad_words=[word]).result().text
        asked = {**body, "bad_words": [word]}
        assert text_of(COMPLETE, client.post(COMPLETE, asked)[1])[0] == wanted
        assert streamed(COMPLETE, client.events(COMPLETE, asked))[0] == wanted
        assert word.strip() not in wanted
    status, answer = client.post(CHAT, {**RIGHT[CHAT], "bad_words": ["\ud800"]})
    assert status == 400 and answer["error"]["param"] in ("bad_words", None)


def test_logprobs_may_name_tokens_by_their_ids(client):
    asked_of = {CHAT: {"logprobs": True, "top_logprobs": 2}, COMPLETE: {"logprobs": 2}}
    for path, fields in asked_of.items():
        body = {**RIGHT[path], **fields, "max_tokens": 3, "temperature": 0,
                "return_token_ids": True}  # fmt: skip
        for asked in (False, True):
            answer = client.post(path, {**body, "return_tokens_as_token_ids": asked})[1]
            choice = answer["choices"][0]
            found = choice["logprobs"]
            if path == CHAT:
                names = [each["token"] for each in found["content"]]
                others = [top["token"] for each in found["content"] for top in each["top_logprobs"]]
            else:
                names = found["tokens"]
                others = [name for top in found["top_logprobs"] for name in top]
            ids = [f"token_id:{each}" for each in choice["token_ids"]][: len(names)]
            assert names and (names == ids) == asked
            assert all(name.startswith("token_id:") for name in others) == asked


def test_documents_go_to_the_template(engine, monkeypatch):
    given = []
    tokenizer = engine.model.tokenizer

    def encode_chat(messages, tools, **variables):
        given.append(variables.get("documents"))
        return [1, 2]

    monkeypatch.setattr(tokenizer, "encode_chat", encode_chat)
    writer = WritingEngine(engine.model, "x")
    documents = [{"title": "T", "text": "text"}]
    with serving(writer, chat_format=None) as client:
        assert client.post(CHAT, {**RIGHT[CHAT], "documents": documents})[0] == 200
        assert client.post(CHAT, RIGHT[CHAT])[0] == 200
        status, answer = client.post(CHAT, {**RIGHT[CHAT], "documents": ["text"]})
    assert given == [documents, None]
    assert status == 400 and answer["error"]["param"].startswith("documents")


def test_prompts_may_be_cut(client, engine):
    long = "import os\n" * 600
    tokens = engine.model.tokenizer.encode(long)
    for given, count in ((7, 7), (-1, 512 - 5)):
        body = {"max_tokens": 5, "truncate_prompt_tokens": given, "return_token_ids": True}
        _, answer = client.post(COMPLETE, {**body, "prompt": long})
        assert answer["usage"]["prompt_tokens"] == count
        assert answer["choices"][0]["prompt_token_ids"] == tokens[-count:]
        messages = [{"role": "user", "content": long}]
        _, chat = client.post(CHAT, {**body, "messages": messages})
        assert chat["usage"]["prompt_tokens"] == len(chat["prompt_token_ids"]) == count
        more = {"max_output_tokens": 5, "truncate_prompt_tokens": given}
        _, answer = client.post(RESPOND, {**more, "input": messages})
        assert answer["usage"]["input_tokens"] == count
    _, echo = client.post(COMPLETE, {"prompt": "a b c d e f", "echo": True, "max_tokens": 1,
                                     "truncate_prompt_tokens": 2, "temperature": 0})  # fmt: skip
    end = engine.model.tokenizer.encode("a b c d e f")[-2:]
    assert echo["choices"][0]["text"].startswith(engine.model.tokenizer.decode(end))


def test_logprobs_of_a_prompt(client, engine):
    """The reference is NumPy in float64 on the logits of the model."""
    tokens = engine.model.tokenizer.encode("import os, sys")
    logits = llm.load(TINY).logits(tokens).numpy().astype(np.float64)
    logits -= logits.max(1, keepdims=True)
    chances = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    body = {"prompt": tokens, "max_tokens": 1, "prompt_logprobs": 2}
    first, *found = client.post(COMPLETE, body)[1]["choices"][0]["prompt_logprobs"]
    assert first is None and len(found) == len(tokens) - 1
    for i, each in enumerate(found):
        own = each[str(tokens[i + 1])]
        assert abs(own["logprob"] - chances[i, tokens[i + 1]]) < 1e-3
        assert own["rank"] == 1 + (chances[i] > chances[i, tokens[i + 1]]).sum()
        assert {int(token) for token in each} == {*np.argsort(-chances[i])[:2], tokens[i + 1]}
        assert own["decoded_token"] == engine.model.tokenizer.decode(tokens[i + 1 : i + 2])
    alone = client.post(COMPLETE, {**body, "prompt_logprobs": 0})[1]["choices"][0]
    assert [list(each) for each in alone["prompt_logprobs"][1:]] == [[str(t)] for t in tokens[1:]]
    chat = client.post(CHAT, {**RIGHT[CHAT], "max_tokens": 1, "prompt_logprobs": 1})[1]
    assert len(chat["prompt_logprobs"]) == chat["usage"]["prompt_tokens"]


def test_a_variable_of_the_template_goes_before_the_effort():
    assert _variables({"reasoning_effort": "low"}, "high") == {"reasoning_effort": "low"}
    assert _variables(None, "high") == {"reasoning_effort": "high"} and _variables(None, None) == {}


def test_seconds_to_wait_are_whole_and_enough():
    for seconds, said in ((0.2, "1"), (1.2, "2"), (3.0, "3")):
        assert ApiError(429, "", retry_after=seconds).headers() == {"Retry-After": said}


def test_the_first_rule_alone_renames_a_field():
    with pytest.raises(ApiError) as raised, renamed({r"^a\b": "b", r"^b\b": "c"}):
        raise ApiError(400, "a[2] is wrong", param="a[2]")
    assert (raised.value.param, raised.value.message) == ("b[2]", "b[2] is wrong")


def test_arguments_of_calls_are_objects_or_stay_texts():
    for text, made in (('{"a": 1}', {"a": 1}), ("", {}), ("[1]", "[1]"), ("{a", "{a")):
        (call,) = _calls([{"id": "x", "function": {"name": "f", "arguments": text}}], "calls")
        assert call == {"id": "x", "function": {"name": "f", "arguments": made}}
