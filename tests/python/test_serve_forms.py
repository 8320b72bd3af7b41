"""Schemas made to cost much: their clients are refused in time, and others get on."""

import contextlib
import pathlib
import threading
import time

import pytest
from serving import TINY, WritingEngine, serving, wait_for

from kernwright import llm
from kernwright.errors import InvalidArgument
from kernwright.llm._guide import trial
from kernwright.llm._guide.compiler import compiler_of
from kernwright.llm._guide.form import form_of
from kernwright.serve.http.keys import Keys

CHAT = "/v1/chat/completions"
HI = [{"role": "user", "content": "Hi"}]


def slow_schema(number=0):
    """One whose compile takes hours of llguidance."""
    patterns = [{"type": "string", "pattern": f"(a|b)*a(a|b){{{i}}}"} for i in range(24)]
    return {"allOf": patterns, "title": str(number)}


def ask(schema):
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    return {"messages": HI, "response_format": form}


def forced(parameters):
    parameters = {"type": "object", "properties": {"x": parameters}, "required": ["x"]}
    tool = {"type": "function", "function": {"name": "f", "parameters": parameters}}
    return {"messages": HI, "tools": [tool], "tool_choice": "required"}


@pytest.fixture(scope="module")
def model():
    return llm.load(TINY)


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr(trial, "_SECONDS", 1)
    monkeypatch.setattr(trial, "_LONGEST", 4.0)


def children():
    """The processes that compile. Threads and processes may end while they are looked at."""
    found = []
    for task in pathlib.Path("/proc/self/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for number in (task / "children").read_text().split():
                with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                    if b"llguidance" in pathlib.Path("/proc", number, "cmdline").read_bytes():
                        found.append(number)
    return found


def test_a_compile_is_killed_in_time(model, short):
    compiler = compiler_of(model.tokenizer, model.config.vocab_size, model.eos)
    grammar = "start: <[1023]> %json " + form_of({"schema": slow_schema()}).text
    for options in ({"schema": slow_schema()}, {"grammar": grammar}):
        begin = time.monotonic()
        with pytest.raises(InvalidArgument, match="longer than 1 s to compile"):
            trial.require_cheap(compiler, form_of(options))
        assert time.monotonic() - begin < 10 and not children()
    form = form_of({"schema": {"type": "integer"}})
    trial.require_cheap(compiler, form)
    compiler.compile(form)
    begin = time.monotonic()
    trial.require_cheap(compiler, form)  # without a process
    assert time.monotonic() - begin < 0.01
    trial.require_cheap(compiler, form_of({"regex": "("}))  # compile() says what is wrong
    with pytest.raises(InvalidArgument, match="cannot be used"):
        compiler.compile(form_of({"regex": "("}))


def test_a_busy_machine_refuses_no_form(model, monkeypatch):
    """A compile may wait for a processor longer than it may run on one."""
    compiler = compiler_of(model.tokenizer, model.config.vocab_size, model.eos)
    form = form_of({"schema": {"type": "integer", "title": "busy"}})
    monkeypatch.setattr(trial, "_SECONDS", 1)
    monkeypatch.setattr(trial, "_PROGRAM", "import time; time.sleep(1.5)\n" + trial._PROGRAM)
    trial.require_cheap(compiler, form)
    monkeypatch.setattr(trial, "_LONGEST", 0.3)
    with pytest.raises(InvalidArgument, match="longer than 1 s to compile"):
        trial.require_cheap(compiler, form)
    assert not children()


def test_slow_schemas_of_one_client_leave_others_alone(model, short):
    keys = Keys({"attacker": "first-key", "other": "other-key"})
    with serving(WritingEngine(model, "7"), keys=keys) as c:
        attack = {"Authorization": "Bearer first-key"}
        found = []
        bodies = [ask(slow_schema(i)) for i in range(4)] + [
            forced(slow_schema(i)) for i in range(2)
        ]
        threads = [
            threading.Thread(target=lambda body=body: found.append(c.post(CHAT, body, attack)))
            for body in bodies
        ]
        for each in threads:
            each.start()
        wait_for(lambda: c.server.running == len(bodies))
        wait_for(children)
        own = {"Authorization": "Bearer other-key"}
        for body in ({"messages": HI}, ask({"type": "integer"}), ask({"type": "boolean"})):
            assert c.post(CHAT, body, own)[0] == 200
            assert len(children()) <= 2
        assert c.server.running >= 2  # the attacker's still wait for each other
        for each in threads:
            each.join(60)
        assert [status for status, _ in found] == [400] * len(bodies)
        assert all("longer than 1 s" in made["error"]["message"] for _, made in found)
        assert c.post(CHAT, ask({"type": "null"}), attack)[0] == 200
