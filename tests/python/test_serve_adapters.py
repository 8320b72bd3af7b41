"""Adapters by the server: names in requests and lists, loaded and unloaded over HTTP."""

import argparse
import contextlib
import json
import shutil
import types

import numpy as np
import pytest
from adapter_files import adapter_written
from serving import TINY, serving, serving_slots, wait_for

from kernwright import llm
from kernwright.cli import main
from kernwright.errors import InvalidArgument
from kernwright.serve import start
from kernwright.serve.http.keys import Keys
from kernwright.serve.loader import Loader
from kernwright.serve.model_slot import ModelSlot
from kernwright.serve.served import AdapterCard

PROMPT = "def f(x):"
ASK = {"prompt": PROMPT, "max_tokens": 8, "temperature": 0, "ignore_eos": True}
MODULES = {"model.layers.1.self_attn.q_proj": (128, 128), "model.layers.2.mlp.up_proj": (384, 128)}


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("served")
    for seed, name in enumerate(("sql", "poems")):
        adapter_written(root / "adapters" / name, MODULES, 3, seed=seed, std=0.8)
    adapter_written(root / "outside", MODULES)
    adapter_written(root / "adapters" / "dora", MODULES, use_dora=True)
    return root


@pytest.fixture(scope="module")
def alone(root):
    """What a model with one adapter writes by itself."""
    model = llm.load(TINY)
    for name in ("sql", "poems"):
        model.load_adapter(root / "adapters" / name)
    model.generate(PROMPT, max_tokens=1)
    return model


@contextlib.contextmanager
def client_of(root, **fields):
    model = llm.load(TINY)
    model.load_adapter(root / "adapters" / "sql")
    fields = {"adapter_folder": str(root / "adapters"), **fields}
    with llm.Engine(model, max_rows=4) as engine, serving(engine, **fields) as client:
        card = AdapterCard("sql", "tiny", str(root / "adapters" / "sql"), 0)
        client.server.adapters["sql"] = card
        yield client


@pytest.fixture(scope="module")
def client(root):
    with client_of(root) as client:
        yield client


def text(client, name):
    status, answer = client.post("/v1/completions", {**ASK, "model": name})
    assert (status, answer["model"]) == (200, name)
    return answer["choices"][0]["text"]


def got(client, path):
    status, _, content = client.ask("GET", path)
    assert status == 200
    return json.loads(content)


def expected(alone, adapter):
    return alone.generate(PROMPT, adapter=adapter, max_tokens=8, ignore_eos=True).text


def test_the_model_field_names_an_adapter(client, alone):
    texts = [text(client, name) for name in ("tiny", "sql")]
    assert texts == [expected(alone, None), expected(alone, "sql")]
    assert len(set(texts)) == 2
    chat = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 4, "temperature": 0}
    status, answer = client.post("/v1/chat/completions", {**chat, "model": "sql"})
    assert (status, answer["model"]) == (200, "sql")
    made = alone.chat(chat["messages"], adapter="sql", max_tokens=4)
    assert answer["usage"]["completion_tokens"] == len(made.tokens)
    assert (answer["choices"][0]["message"]["content"] or "") == made.message["content"]
    status, answer = client.post("/v1/embeddings", {"input": PROMPT, "model": "sql"})
    made = np.array(answer["data"][0]["embedding"])
    assert np.allclose(made, alone.embed(PROMPT, adapter="sql").numpy(), atol=1e-5)
    echo = {**ASK, "max_tokens": 0, "echo": True, "logprobs": 0, "model": "sql"}
    found = client.post("/v1/completions", echo)[1]["choices"][0]["logprobs"]["token_logprobs"]
    tokens = alone.tokenizer.encode(PROMPT)
    logits = alone.logits(tokens, adapter="sql").numpy().astype(np.float64)
    chances = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    wanted = [chances[i, token] for i, token in enumerate(tokens[1:])]
    assert found[0] is None and np.allclose(found[1:], wanted, atol=1e-4)


def test_models_are_listed_with_their_adapters(client, root):
    cards = {each["id"]: each for each in got(client, "/v1/models")["data"]}
    assert list(cards) == ["tiny", "sql"]
    assert "parent" not in cards["tiny"] and cards["sql"]["status"] == "loaded"
    assert cards["sql"]["parent"] == "tiny"
    assert cards["sql"]["root"] == str(root / "adapters" / "sql")
    assert got(client, "/v1/models/sql") == cards["sql"]


def test_adapters_come_and_go_over_http(client, alone, root):
    load = {"lora_name": "verses", "lora_path": str(root / "adapters" / "poems")}
    status, card = client.post("/v1/load_lora_adapter", load)
    assert status == 200
    assert (card["id"], card["parent"], card["root"]) == ("verses", "tiny", load["lora_path"])
    assert text(client, "verses") == expected(alone, "poems")
    status, answer = client.post("/v1/load_lora_adapter", load)
    assert status == 400 and answer["error"]["param"] == "lora_name"
    assert client.post("/v1/unload_lora_adapter", {"lora_name": "verses"})[0] == 200
    status, answer = client.post("/v1/completions", {**ASK, "model": "verses"})
    assert status == 404 and answer["error"]["code"] == "model_not_found"
    assert "there is tiny, sql" in answer["error"]["message"]
    status, answer = client.post("/v1/unload_lora_adapter", {"lora_name": "verses"})
    assert status == 404 and answer["error"]["code"] == "adapter_not_found"
    # A path may be relative to the folder; the name may come again.
    status, _ = client.post("/v1/load_lora_adapter", {"lora_name": "verses", "lora_path": "sql"})
    assert status == 200 and text(client, "verses") == expected(alone, "sql")
    assert client.post("/v1/unload_lora_adapter", {"lora_name": "verses"})[0] == 200


@pytest.mark.parametrize(
    ("body", "param", "message"),
    [
        ({"lora_name": "x"}, "lora_path", "missing"),
        ({"lora_path": "poems"}, "lora_name", "missing"),
        ({"lora_name": "", "lora_path": "poems"}, "lora_name", "new name"),
        ({"lora_name": "tiny", "lora_path": "poems"}, "lora_name", "new name"),
        ({"lora_name": "x", "lora_path": "nothing"}, "lora_path", "no adapter_config.json"),
        ({"lora_name": "x", "lora_path": "dora"}, "lora_path", "use_dora is not supported"),
        ({"lora_name": "x", "lora_path": "../outside"}, "lora_path", "--allow-adapters"),
        ({"lora_name": "x", "lora_path": "/etc"}, "lora_path", "--allow-adapters"),
        ({"lora_name": "x", "lora_path": "."}, "lora_path", "--allow-adapters"),
        ({"lora_name": "x", "lora_path": "a\0b"}, "lora_path", "--allow-adapters"),
        ({"lora_name": "x", "lora_path": "poems", "model": "sql"}, "model", "one of tiny"),
        ({"lora_name": "x", "lora_path": "poems", "rank": 3}, "rank", "unknown"),
        ({"lora_name": 3, "lora_path": "poems"}, "lora_name", "str"),
    ],
)
def test_wrong_loads_are_refused_by_field(client, body, param, message):
    status, answer = client.post("/v1/load_lora_adapter", body)
    assert status == 400
    assert answer["error"]["param"] == param and message in answer["error"]["message"]
    assert list(client.server.adapters) == ["sql"]


def test_links_do_not_lead_outside(client, root):
    link = root / "adapters" / "link"
    link.symlink_to(root / "outside")
    body = {"lora_name": "x", "lora_path": "link"}
    status, answer = client.post("/v1/load_lora_adapter", body)
    link.unlink()
    assert status == 400 and "--allow-adapters" in answer["error"]["message"]


@pytest.mark.parametrize("name", ["adapter_config.json", "adapter_model.safetensors"])
def test_files_that_are_links_do_not_lead_outside(name, client, root):
    folder = root / "adapters" / "linked"
    shutil.copytree(root / "outside", folder)
    (folder / name).unlink()
    (folder / name).symlink_to(root / "outside" / name)
    body = {"lora_name": "x", "lora_path": "linked"}
    status, answer = client.post("/v1/load_lora_adapter", body)
    shutil.rmtree(folder)
    assert status == 400 and "--allow-adapters" in answer["error"]["message"]


@pytest.mark.parametrize("name", ["x" * 257, "a\nb"])
def test_names_are_short_and_printable(name, client):
    body = {"lora_name": name, "lora_path": "poems"}
    status, answer = client.post("/v1/load_lora_adapter", body)
    assert status == 400 and answer["error"]["param"] == "lora_name"


def test_an_adapter_unloaded_while_it_is_loaded_leaves_no_slot(client, root):
    """The name goes while the engine's thread has not put the weights yet."""
    engine = client.server.models["tiny"].acquire().engine
    load = engine.load_adapter

    def slow(path, name):
        assert client.post("/v1/unload_lora_adapter", {"lora_name": name})[0] == 200
        return load(path, name)

    engine.load_adapter = slow
    try:
        body = {"lora_name": "x", "lora_path": "poems"}
        assert client.post("/v1/load_lora_adapter", body)[0] == 404
    finally:
        del engine.load_adapter
        client.server.models["tiny"].release()
    assert set(engine._model.adapters) == {"sql"}
    assert client.post("/v1/load_lora_adapter", body)[0] == 200
    assert client.post("/v1/unload_lora_adapter", {"lora_name": "x"})[0] == 200


def test_a_model_comes_back_without_an_adapter_whose_files_are_gone(root, tmp_path):
    gone = tmp_path / "gone"
    shutil.copytree(root / "adapters" / "sql", gone)
    cards = {"sql": AdapterCard("sql", "tiny", str(gone), 0)}
    options = argparse.Namespace(lazy=False)
    loader = Loader(options, {}, 2**22, lambda name: llm.load(TINY), cards)
    model = llm.load(TINY)
    loader._load_adapter(model, cards["sql"])
    loader._loaded.add("tiny")
    shutil.rmtree(gone)
    loader._load_adapter(model, AdapterCard("sql", "tiny", str(gone), 0))
    assert cards == {}
    loader._loaded.clear()
    with pytest.raises(llm.ModelError, match="is no adapter"):
        loader._load_adapter(model, AdapterCard("sql", "tiny", str(gone), 0))


def test_an_unknown_model_of_a_load_is_404(client):
    body = {"lora_name": "x", "lora_path": "poems", "model": "other"}
    assert client.post("/v1/load_lora_adapter", body)[0] == 404


def test_loading_needs_a_key_and_the_option(root):
    body = {"lora_name": "x", "lora_path": "poems"}
    with client_of(root, keys=Keys({"a": "a-key"})) as client:
        for path in ("/v1/load_lora_adapter", "/v1/unload_lora_adapter"):
            assert client.post(path, body)[0] == 401
        assert client.post("/v1/load_lora_adapter", body, {"X-Api-Key": "a-key"})[0] == 200
    with client_of(root, adapter_folder=None) as client:
        for path in ("/v1/load_lora_adapter", "/v1/unload_lora_adapter"):
            assert client.post(path, body)[0] == 404
        assert text(client, "sql")


def test_a_model_gets_its_adapters_back_when_it_is_loaded_again(root, alone):
    """Those of the command line, and those that were loaded since."""
    cards = {"sql": AdapterCard("sql", "tiny", str(root / "adapters" / "sql"), 0)}
    options = argparse.Namespace(
        max_rows=2, max_tokens_per_step=None, no_prefix_cache=False, deterministic=False,
        no_warm_up=True,
        queue_limit=None, step_limit=300.0, chat_format="none", draft=None, host_cache=None,
        lazy=True,
    )  # fmt: skip
    loader = Loader(options, {}, 2**22, lambda name: llm.load(TINY), cards)
    slots = {"tiny": ModelSlot("tiny", lambda: loader.load("tiny"), 512)}
    fields = {"adapters": cards, "adapter_folder": str(root / "adapters")}
    with serving_slots(slots, idle_seconds=0.0, **fields) as client:
        assert text(client, "sql") == expected(alone, "sql")
        body = {"lora_name": "verses", "lora_path": "poems"}
        assert client.post("/v1/load_lora_adapter", body)[0] == 200
        for name, adapter in (("verses", "poems"), ("tiny", None), ("sql", "sql")):
            client.loop.call_soon_threadsafe(client.server.unload_idle)
            wait_for(lambda: got(client, "/v1/models/sql")["status"] == "unloaded")
            assert text(client, name) == expected(alone, adapter)
        client.loop.call_soon_threadsafe(client.server.unload_idle)
        wait_for(lambda: got(client, "/v1/models/sql")["status"] == "unloaded")
        assert client.post("/v1/unload_lora_adapter", {"lora_name": "sql"})[0] == 200
        assert got(client, "/v1/models/tiny")["status"] == "unloaded"
        assert client.post("/v1/completions", {**ASK, "model": "sql"})[0] == 404
        assert text(client, "verses") == expected(alone, "poems")
    client.server.models["tiny"].close()


def test_the_command_names_what_is_wrong(root, capsys):
    sql = root / "adapters" / "sql"
    command = ["serve", TINY, "--port", "0", "--max-rows", "2", "--lora-modules"]
    assert main([*command, f"sql={sql}", f"more={sql}", "--max-adapters", "1"]) == 1
    assert "all 1 slots of adapters are in use" in capsys.readouterr().err
    assert main([*command, f"sql={root}"]) == 1
    assert "no adapter_config.json" in capsys.readouterr().err


def test_the_description_has_adapters(client, root):
    paths = got(client, "/openapi.json")["paths"]
    assert {"/v1/load_lora_adapter", "/v1/unload_lora_adapter"} <= paths.keys()
    names = paths["/v1/models/{name}"]["get"]["parameters"][0]["schema"]["enum"]
    assert names == ["tiny", "sql"]


def arguments(*modules, folder=None):
    return types.SimpleNamespace(lora_modules=list(modules), allow_adapters=folder)


def test_arguments_name_adapters(tmp_path):
    made = start._adapters(arguments("a=x/y", "b=z=1", folder=str(tmp_path)), {"m": None, "n": "p"})
    assert [card[:3] for card in made.values()] == [("a", "m", "x/y"), ("b", "m", "z=1")]
    for wrong in ("a", "=x", "a=", "m=x"):
        with pytest.raises(InvalidArgument, match="--lora-modules is NAME=PATH"):
            start._adapters(arguments(wrong), {"m": None})
    with pytest.raises(InvalidArgument, match="--lora-modules"):
        start._adapters(arguments("a=x", "a=y"), {"m": None})
    with pytest.raises(InvalidArgument, match="--allow-adapters is a folder"):
        start._adapters(arguments(folder=str(tmp_path / "no")), {})
