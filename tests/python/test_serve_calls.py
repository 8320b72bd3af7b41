"""tool_choice over HTTP: forced calls of a real engine, hidden tools, one call at a time."""

import json

import jsonschema
import numpy as np
import pytest
from serving import TINY, WritingEngine, serving
from test_llm_forms import tokens_in
from test_serve_answers import gathered

from kernwright import llm
from kernwright.llm._guide.compiler import guide_of
from kernwright.llm._guide.form import form_of
from kernwright.llm._parse.formats import FORMATS

CHAT = "/v1/chat/completions"
HI = [{"role": "user", "content": "Hi"}]
PARAMETERS = {
    "add": {
        "type": "object",
        "properties": {
            "a": {"type": "integer", "minimum": 0, "maximum": 99},
            "b": {"enum": ["one", 't"wo', None]},
        },
        "required": ["a", "b"],
        "additionalProperties": False,
    },
    "now": {"type": "object", "properties": {}, "additionalProperties": False},
}
TOOLS = [
    {"type": "function", "function": {"name": "add", "parameters": PARAMETERS["add"]}},
    {"type": "function", "function": {"name": "now"}},
]
NAMED = {"type": "function", "function": {"name": "add"}}
ASK = {"messages": HI, "tools": TOOLS, "max_tokens": 400, "temperature": 1, "seed": 5}
TWO = "".join(
    f'<tool_call>{{"name": "add", "arguments": {{"a": {a}, "b": "one"}}}}</tool_call>'
    for a in (1, 2)
)


@pytest.fixture(scope="module")
def model():
    return llm.load(TINY)


class DrawingEngine(WritingEngine):
    """Draws the tokens of a text with a grammar evenly from those that its masks allow."""

    def submit(self, prompt, **options):
        if "grammar" in options:
            guide = guide_of(self.model, form_of({"grammar": options.pop("grammar")}))
            state, draw, tokens = guide.start(), np.random.default_rng(options.get("seed", 1)), []
            mask = state.advance(None)
            while mask is not None:
                token = int(draw.choice(tokens_in(mask, self.model.config.vocab_size)))
                if token in self.model.eos:
                    break
                tokens.append(token)
                mask = state.advance(token)
            data = b"".join(self.model.tokenizer.bytes(token) for token in tokens)
            self.text = data.decode()
        return super().submit(prompt, **options)


@pytest.fixture(scope="module")
def engine(model):
    return DrawingEngine(model)


def require_calls(calls):
    """The names of valid calls."""
    for name, arguments in calls:
        jsonschema.validate(json.loads(arguments), PARAMETERS[name])
    return [name for name, _ in calls]


@pytest.mark.parametrize("format", sorted(FORMATS))
def test_forced_calls_validate_streamed_and_whole(engine, format):
    with serving(engine, chat_format=format) as c:
        for choice, reason in ((NAMED, "stop"), ("required", "tool_calls")):
            body = {**ASK, "tool_choice": choice, "parallel_tool_calls": False}
            status, whole = c.post(CHAT, body)
            assert status == 200, whole
            message, ended = (whole["choices"][0][key] for key in ("message", "finish_reason"))
            calls = [tuple(each["function"].values()) for each in message["tool_calls"]]
            assert len(require_calls(calls)) == 1 and ended == reason
            assert message["content"] is None and (choice == "required" or calls[0][0] == "add")
            made, streamed, reasons = gathered(c.events(CHAT, body)[:-1])
            assert [(each["name"], each["text"]) for each in streamed] == calls
            assert made["content"] == "" and reasons == [reason]


def test_a_real_engine_follows_the_grammar_of_a_call(model):
    """A schema of the content says nothing about calls."""
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"const": 7}}}
    tools = [{"type": "function", "function": {
        "name": "a", "parameters": {"const": {"x": 1}, "type": "object"}}}]  # fmt: skip
    body = {**ASK, "tools": tools, "tool_choice": "required", "parallel_tool_calls": False}
    with llm.Engine(model, max_rows=4) as engine, serving(engine, chat_format="llama3") as c:
        _, whole = c.post(CHAT, {**body, "n": 2, "response_format": form})
        assert len(whole["choices"]) == 2
        for choice in whole["choices"]:
            (call,) = choice["message"]["tool_calls"]
            assert json.loads(call["function"]["arguments"]) == {"x": 1}
            assert choice["finish_reason"] == "tool_calls"
        _, cut = c.post(CHAT, {**body, "max_tokens": 3})
        assert cut["choices"][0]["finish_reason"] == "length"
        tools[0]["function"]["parameters"] = {"type": "object", "properties": {"x": {"type": "y"}}}
        status, wrong = c.post(CHAT, body)
        assert status == 400 and "grammar cannot be used" in wrong["error"]["message"]


def test_forced_calls_of_other_interfaces(engine):
    functions = [{"type": "function", **each["function"]} for each in TOOLS]
    with serving(engine) as c:
        choice = {"type": "function", "name": "add"}
        body = {"input": "Hi", "tools": functions, "tool_choice": choice, "max_output_tokens": 400}
        _, made = c.post("/v1/responses", body)
        (item,) = made["output"]
        assert item["type"] == "function_call" and made["status"] == "completed"
        assert require_calls([(item["name"], item["arguments"])]) == ["add"]

        tools = [{"name": name, "input_schema": schema} for name, schema in PARAMETERS.items()]
        for choice in ({"type": "tool", "name": "add"}, {"type": "any"}):
            choice["disable_parallel_tool_use"] = True
            body = {"messages": HI, "tools": tools, "tool_choice": choice, "max_tokens": 400}
            _, made = c.post("/v1/messages", body)
            (block,) = made["content"]
            assert block["type"] == "tool_use" and made["stop_reason"] == "tool_use"
            assert require_calls([(block["name"], json.dumps(block["input"]))])


def test_plain_texts_have_no_calls_to_force(model):
    with serving(WritingEngine(model, "x"), chat_format=None) as c:
        status, made = c.post(CHAT, {**ASK, "tool_choice": "required"})
        assert status == 400 and "plain text" in made["error"]["message"]
        assert c.post(CHAT, ASK)[0] == 200


@pytest.mark.parametrize("stream", [False, True])
def test_one_call_at_a_time_where_the_client_wants_it(model, stream):
    engine = WritingEngine(model, TWO)
    with serving(engine) as c:
        for body, count in ((ASK, 2), ({**ASK, "parallel_tool_calls": False}, 1)):
            if stream:
                _, calls, reasons = gathered(c.events(CHAT, body)[:-1])
                found, reason = [json.loads(each["text"])["a"] for each in calls], reasons[0]
            else:
                choice = c.post(CHAT, body)[1]["choices"][0]
                calls, reason = choice["message"]["tool_calls"], choice["finish_reason"]
                found = [json.loads(each["function"]["arguments"])["a"] for each in calls]
            assert found == [1, 2][:count] and reason == "tool_calls"
        assert engine.running == 0


def test_none_hides_the_tools(model):
    """The template writes the tools that it is told of."""
    tokenizer = llm.Tokenizer(TINY)
    tokenizer.chat_template = llm.ChatTemplate(
        "{{ tools | tojson if tools else 'no tools' }}{{ messages[0].content }}<tool_call>"
    )
    own = llm.load(TINY)
    own.tokenizer = tokenizer
    with serving(WritingEngine(own, "x")) as c:
        counts = {}
        for choice in ("auto", "none", None):
            usage = c.post(CHAT, {**ASK, "tool_choice": choice})[1]["usage"]
            counts[choice] = usage["prompt_tokens"]
        assert counts["auto"] == counts[None] > counts["none"]
        usage = c.post(CHAT, {"messages": HI})[1]["usage"]
        assert usage["prompt_tokens"] == counts["none"]
