"""Several models: loaded when a request needs them, unloaded while nobody does."""

import argparse
import json
import re
import signal
import threading
import time
import types

import pytest
from serving import TINY, Client, WritingEngine, serving_slots, wait_for
from test_serve_life import get, running

import kernwright as kw
from kernwright import llm
from kernwright.errors import OutOfMemory
from kernwright.llm._load import Plan
from kernwright.llm._weights.memory import Memory
from kernwright.serve.http.limits import Limits
from kernwright.serve.http.log import log
from kernwright.serve.loader import Loader, warm_up
from kernwright.serve.model_slot import ModelSlot
from kernwright.serve.served import Served

CHAT = "/v1/chat/completions"


def ask(model):
    return {"model": model, "messages": [{"role": "user", "content": "Hi"}]}


@pytest.fixture(scope="module")
def model():
    return llm.load(TINY)


class Gate:
    """A load that waits until it is let go, and then does what `outcomes` say."""

    def __init__(self, model, *outcomes):
        self.model, self.outcomes = model, list(outcomes)
        self.open, self.begun, self.engines = threading.Event(), threading.Event(), []

    def slot(self, name="lazy"):
        return ModelSlot(name, lambda: self.load(name), 512)

    def load(self, name):
        self.begun.set()
        assert self.open.wait(20)
        if self.outcomes and (error := self.outcomes.pop(0)) is not None:
            raise error
        self.engines.append(WritingEngine(self.model, "word " * 8))
        return Served(name, self.model, self.engines[-1], "hermes")


def posts(client, *bodies):
    """Threads that post, and the answers that they got."""
    found = []
    threads = [
        threading.Thread(target=lambda body=body: found.append(client.post(CHAT, body)))
        for body in bodies
    ]
    for each in threads:
        each.start()
    return threads, found


def metric(client, name):
    text = client.ask("GET", "/metrics")[2].decode()
    return {m[1]: float(m[2]) for m in re.finditer(rf'{name}{{model_name="(\w+)"}} (\S+)', text)}


def states(client):
    found = json.loads(client.ask("GET", "/v1/models")[2])
    return {each["id"]: each["status"] for each in found["data"]}


def test_a_model_is_loaded_once_by_the_requests_that_wait_for_it(model):
    gate = Gate(model)
    ready = ModelSlot.filled(Served("ready", model, WritingEngine(model, "x"), "hermes"))
    with serving_slots({"ready": ready, "lazy": gate.slot()}) as c:
        assert states(c) == {"ready": "loaded", "lazy": "unloaded"}
        assert metric(c, "kernwright:model_loaded") == {"ready": 1, "lazy": 0}
        threads, found = posts(c, *[ask("lazy")] * 3)
        assert gate.begun.wait(20)
        wait_for(lambda: c.server.running == 3)
        begin = time.monotonic()
        assert states(c)["lazy"] == "loading" and c.ask("GET", "/health/ready")[0] == 200
        assert c.post(CHAT, ask("ready"))[0] == 200  # another model's request does not wait
        assert time.monotonic() - begin < 5 and not found
        gate.open.set()
        for each in threads:
            each.join(20)
        assert [status for status, _ in found] == [200] * 3 and len(gate.engines) == 1
        assert {body["model"] for _, body in found} == {"lazy"}
        assert states(c) == {"ready": "loaded", "lazy": "loaded"}
        assert metric(c, "kernwright:model_loads_total") == {"ready": 1, "lazy": 1}


def test_a_request_waits_for_a_load_only_so_long(model):
    gate = Gate(model)
    with serving_slots({"lazy": gate.slot()}, limits=Limits(load_seconds=0.2, concurrent=2)) as c:
        status, headers, body = c.ask("POST", CHAT, ask(None))
        assert status == 503 and b"model_loading" in body and int(headers["retry-after"]) >= 1
        threads, _ = posts(c, *[ask("lazy")] * 2)
        wait_for(lambda: c.server.running == 2)
        assert c.post(CHAT, ask("lazy"))[0] == 429  # those that wait count
        for each in threads:
            each.join(20)
        gate.open.set()
        wait_for(lambda: states(c)["lazy"] == "loaded")
        assert c.post(CHAT, ask("lazy"))[0] == 200 and len(gate.engines) == 1


def test_a_client_that_leaves_does_not_wait_for_a_load(model):
    gate = Gate(model)
    with serving_slots({"lazy": gate.slot()}) as c:
        connection = c.connect()
        connection.request("POST", CHAT, '{"messages": [{"role": "user", "content": "a"}]}')
        wait_for(lambda: c.server.running == 1)
        connection.close()
        wait_for(lambda: c.server.running == 0)
        gate.open.set()
        wait_for(lambda: states(c)["lazy"] == "loaded")


def test_a_load_that_fails_is_told_and_tried_again(model):
    gate = Gate(model, OutOfMemory("9 bytes are free"), llm.ModelError("a.bin is damaged"),
                RuntimeError("a secret"), None)  # fmt: skip
    gate.open.set()
    with serving_slots({"lazy": gate.slot()}) as c:
        status, headers, body = c.ask("POST", CHAT, ask("lazy"))
        assert status == 503 and headers["retry-after"] and b"model_does_not_fit" in body
        assert b"9 bytes are free" in body
        for words in ("a.bin is damaged", "RuntimeError, see the log"):
            status, told = c.post(CHAT, ask("lazy"))
            assert status == 500 and told["error"]["code"] == "model_not_loaded"
            assert words in told["error"]["message"] and "secret" not in told["error"]["message"]
        assert c.ask("GET", "/health")[0] == 200
        assert c.post(CHAT, ask("lazy"))[0] == 200


def test_a_model_is_unloaded_while_idle_and_never_while_it_runs(model):
    gate = Gate(model)
    gate.open.set()
    with serving_slots({"lazy": gate.slot()}, idle_seconds=0.05) as c:
        assert c.post(CHAT, ask("lazy"))[0] == 200
        gate.engines[0].seconds = 0.05
        threads, found = posts(c, ask("lazy"))
        wait_for(lambda: gate.engines[0].running == 1)
        while threads[0].is_alive():
            c.in_loop(c.server.unload_idle)
            assert found or gate.engines[0].healthy
            time.sleep(0.01)
        assert found[0][0] == 200
        time.sleep(0.06)
        c.in_loop(c.server.unload_idle)
        assert states(c)["lazy"] == "unloaded" and c.ask("GET", "/health/ready")[0] == 200
        wait_for(lambda: not gate.engines[0].healthy)
        assert metric(c, "kernwright:model_loaded") == {"lazy": 0}
        assert c.post(CHAT, ask("lazy"))[0] == 200 and len(gate.engines) == 2


def test_an_unloaded_model_gives_its_memory_back_and_its_counters_stay():
    def load():
        made = llm.load(TINY)
        return Served("tiny", made, llm.Engine(made, max_rows=2), "hermes")

    body = {**ask("tiny"), "max_tokens": 3, "temperature": 0}
    used = kw.memory.stats()["used"]
    with serving_slots({"tiny": ModelSlot("tiny", load, 512)}, idle_seconds=0) as c:
        first = c.post(CHAT, body)
        steps = metric(c, "kernwright:engine_steps_total")["tiny"]
        assert first[0] == 200 and steps >= 3 and kw.memory.stats()["used"] > used
        c.in_loop(c.server.unload_idle)
        wait_for(lambda: kw.memory.stats()["used"] == used)
        assert metric(c, "kernwright:engine_steps_total")["tiny"] == steps
        again = c.post(CHAT, body)
        assert again[1]["choices"] == first[1]["choices"]
        assert metric(c, "kernwright:engine_steps_total")["tiny"] == 2 * steps
        c.in_loop(c.server.unload_idle)


def test_models_share_what_all_weights_leave_with_those_of_a_draft_model(monkeypatch):
    where = "kernwright.serve.loader"
    sizes = {}

    class Engine:
        healthy = True

        def __init__(self, model, *, kv_memory, draft, **options):
            sizes[model.name] = kv_memory, draft

    monkeypatch.setattr(f"{where}.available_bytes", lambda device: 1000)
    monkeypatch.setattr(f"{where}.llm.Engine", Engine)
    arguments = argparse.Namespace(
        max_rows=None, max_tokens_per_step=None, no_prefix_cache=False, deterministic=False,
        queue_limit=None, step_limit=None, host_cache=None, chat_format="none", lazy=False,
        draft=llm.Draft(model="small"), no_warm_up=True,
    )  # fmt: skip

    def planned(weights, draft=None):
        memory = Memory("device", weights, 0, 1, 0)
        return Plan(None, memory, 1, None, None, draft)

    plans = {"a": planned(300, planned(50)), "b": planned(200)}

    def load(name):
        return types.SimpleNamespace(name=name, device=None, tokenizer=None)

    loader = Loader(arguments, plans, "auto", load)
    served = [loader.load(name) for name in plans]
    assert len(served) == 2
    assert sizes["a"] == (int(0.8 * (1000 - 200 - 50) / 2), arguments.draft)
    assert sizes["b"] == ("auto", None)  # the other model runs


def test_the_command_loads_and_unloads():
    options = ["--port", "0", "--max-rows", "2", "--lazy", "--idle-unload", "0.2"]
    command = ["-m", "kernwright", "serve", TINY, "--also", f"draft={TINY}_draft", *options]
    with running(*command) as (child, port):
        c = Client(port, None, None)
        assert states(c) == {"tiny_llama": "unloaded", "draft": "unloaded"}
        body = {"prompt": "a", "max_tokens": 2, "model": "draft"}
        for _ in range(2):
            assert c.post("/v1/completions", body)[0] == 200
            wait_for(lambda: states(c) == {"tiny_llama": "unloaded", "draft": "unloaded"})
        assert metric(c, "kernwright:model_loads_total") == {"tiny_llama": 0, "draft": 2}
        child.send_signal(signal.SIGTERM)
        assert child.wait(20) == 0
        with pytest.raises(OSError):
            get(port, "/health")


def test_a_warm_engine_has_the_steps_of_first_requests():
    with llm.Engine(llm.load(TINY), max_rows=2, kv_memory=2**22) as engine:
        warm_up(engine, "tiny")
        before = engine.stats()
        assert (before["started"], before["finished"], before["used_pages"]) == (1, 1, 0)
        assert before["cached_pages"] == 0 and before["graphs"] > 0
        engine.submit([5, 6, 7], max_tokens=4, temperature=1.0, ignore_eos=True).result()
        assert engine.stats()["graphs"] == before["graphs"]


def test_a_warm_up_that_fails_is_logged_and_no_more(monkeypatch):
    told = []
    monkeypatch.setattr(log, "warning", lambda text, *values: told.append(text % values))
    engine = llm.Engine(llm.load(TINY), max_rows=2, kv_memory=2**22)
    engine.close()
    warm_up(engine, "tiny")
    assert len(told) == 1 and told[0].startswith("the warm-up of tiny failed: ")
