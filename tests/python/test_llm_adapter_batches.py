"""Texts of many adapters in one batch: each as it is alone, whatever comes and goes."""

import threading

import numpy as np
import pytest
from adapter_files import adapter_written

from kernwright import llm
from kernwright.errors import Error
from kernwright.llm._adapters import slots
from kernwright.llm._adapters.adapters import Adapters

FIELDS = {
    "architectures": ["LlamaForCausalLM"], "vocab_size": 64, "hidden_size": 32,
    "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2,
    "num_key_value_heads": 1, "dtype": "float32", "max_position_embeddings": 128,
}  # fmt: skip
SHAPES = {
    "self_attn.q_proj": (32, 32), "self_attn.k_proj": (16, 32), "self_attn.v_proj": (16, 32),
    "self_attn.o_proj": (32, 32), "mlp.gate_proj": (64, 32), "mlp.down_proj": (32, 64),
}  # fmt: skip
RANKS = {"one": 1, "odd": 13, "two": 2, "wide": 24}
PROMPTS = [[3, 4, 5], [9], list(range(20, 55)), [3, 4, 5, 6, 7, 8]]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Adapters of different ranks and layers."""
    root = tmp_path_factory.mktemp("adapters")
    for i, (name, rank) in enumerate(RANKS.items()):
        modules = {
            f"model.layers.{layer}.{module}": shape
            for layer in range(2) for module, shape in SHAPES.items()
            if name != "two" or (layer == 1 and module.startswith("self_attn"))
        }  # fmt: skip
        adapter_written(root / name, modules, rank, seed=i, std=0.8)
    return root


def make_model(folders, *names, **limits):
    model = llm.load(random=FIELDS, **limits)
    for name in names:
        model.load_adapter(folders / name)
    return model


@pytest.fixture(scope="module")
def alone(folders):
    """The text of a prompt with an adapter, computed alone by another model."""
    model, known = make_model(folders, *RANKS), {}

    def text(prompt, adapter, count=12):
        key = tuple(prompt), adapter, count
        if key not in known:
            made = model.generate(prompt, adapter=adapter, max_tokens=count, logprobs=0)
            known[key] = made.tokens, [each.logprob for each in made.logprobs]
        return known[key]

    return text


def assert_alike(made, expected):
    assert made.tokens == expected[0]
    assert np.allclose([each.logprob for each in made.logprobs], expected[1], atol=2e-4)


def test_texts_with_adapters_differ(alone):
    texts = {tuple(alone(PROMPTS[0], adapter)[0]) for adapter in (None, *RANKS)}
    assert len(texts) == 1 + len(RANKS)


def test_a_mixed_batch_has_the_texts_of_single_rows(folders, alone):
    model = make_model(folders, *RANKS)
    with llm.Engine(model, max_rows=8, max_tokens_per_step=48) as engine:
        asked = [
            (prompt, adapter, engine.submit(prompt, adapter=adapter, max_tokens=12, logprobs=0))
            for prompt in PROMPTS for adapter in (None, *RANKS)
        ]  # fmt: skip
        for prompt, adapter, request in asked:
            assert_alike(request.result(60), alone(prompt, adapter))


def test_streams_and_choices_have_adapters(folders, alone):
    model = make_model(folders, "odd")
    pieces = list(model.stream(PROMPTS[2], adapter="odd", max_tokens=12))
    assert [piece.token for piece in pieces] == alone(PROMPTS[2], "odd")[0]
    made = model.generate(PROMPTS[2], adapter="odd", n=3, max_tokens=12)
    assert [each.tokens for each in made] == [alone(PROMPTS[2], "odd")[0]] * 3


def test_steps_without_adapters_have_no_products_of_them(folders, monkeypatch, alone):
    calls = []
    real = slots.shrink
    monkeypatch.setattr(slots, "shrink", lambda *args: calls.append(args) or real(*args))
    model = make_model(folders, "two")
    assert model.generate(PROMPTS[0], max_tokens=12).tokens == alone(PROMPTS[0], None)[0]
    assert calls == []
    assert (
        model.generate(PROMPTS[0], adapter="two", max_tokens=12).tokens
        == (alone(PROMPTS[0], "two")[0])
    )
    # Two layers of one block, for steps of the prompt and of single tokens, each run and recorded.
    assert len(calls) == 2 * 2 * 2


def test_graphs_stay_while_adapters_of_no_higher_rank_come_and_go(folders, alone):
    model = make_model(folders, "odd", max_adapters=2)
    with llm.Engine(model, max_rows=4, max_tokens_per_step=48) as engine:

        def text(adapter):
            made = engine.submit(PROMPTS[0], adapter=adapter, max_tokens=12, logprobs=0)
            assert_alike(made.result(60), alone(PROMPTS[0], adapter))

        text("odd")
        text(None)
        before = engine.stats()["graphs"]
        for name in ("one", "two"):
            engine.load_adapter(folders / name)
            text(name)
            text("odd")
            model.unload_adapter(name)
        assert engine.stats()["graphs"] == before
        engine.load_adapter(folders / "wide")  # its slots are larger
        assert engine.stats()["graphs"] < before
        for adapter in ("wide", "odd", None):
            text(adapter)


def test_pages_are_shared_within_an_adapter_alone(folders, alone):
    prompt = list(range(10, 50))
    model = make_model(folders, "one", "odd")
    with llm.Engine(model, max_rows=2, max_tokens_per_step=48) as engine:

        def cached(adapter, name=None):
            request = engine.submit(prompt, adapter=adapter, max_tokens=12, logprobs=0)
            assert_alike(request.result(60), alone(prompt, name or adapter))
            return request.cached_tokens

        found = [cached(adapter) for adapter in (None, "one", "odd", "one", None, "odd")]
        assert found == [0, 0, 0, 32, 32, 32]
        model.unload_adapter("one")
        engine.load_adapter(folders / "two", "one")
        assert [cached("one", "two"), cached("one", "two")] == [0, 32]
        stats = engine.stats()
        assert stats["used_pages"] == 0


def test_preempted_texts_are_as_alone(folders, alone):
    model = make_model(folders, "one", "odd")
    page = 16 * 2 * 2 * 16 * 4  # tokens, layers, keys and values, head, bytes
    with llm.Engine(model, max_rows=6, max_tokens_per_step=32, kv_memory=11 * page) as engine:
        asked = [
            (adapter, engine.submit(PROMPTS[2], adapter=adapter, max_tokens=60, logprobs=0))
            for adapter in (None, "one", "odd")
        ]
        for adapter, request in asked:
            assert_alike(request.result(60), alone(PROMPTS[2], adapter, 60))
        assert engine.stats()["preemptions"] > 0


def test_unloading_lets_running_texts_end(folders, alone):
    model = make_model(folders, "odd", max_adapters=1)
    begun = threading.Event()
    with llm.Engine(model, max_rows=2, max_tokens_per_step=48) as engine:
        request = engine.submit(PROMPTS[0], adapter="odd", max_tokens=90, logprobs=0)
        engine.between_steps(begun.set).result(60)
        model.unload_adapter("odd")
        assert model.adapters == {}
        with pytest.raises(llm.ModelError, match="no adapter 'odd'; there are none"):
            engine.submit(PROMPTS[0], adapter="odd")
        with pytest.raises(llm.ModelError, match="1 by requests of adapters that were unloaded"):
            engine.load_adapter(folders / "one")
        assert_alike(request.result(60), alone(PROMPTS[0], "odd", 90))
        engine.load_adapter(folders / "one")
        made = engine.submit(PROMPTS[0], adapter="one", max_tokens=12, logprobs=0)
        assert_alike(made.result(60), alone(PROMPTS[0], "one"))


def test_an_adapter_that_is_wrong_harms_no_other_text(folders, alone, tmp_path):
    model = make_model(folders, "one")
    adapter_written(tmp_path / "bad", {"model.layers.9.mlp.down_proj": (32, 64)})
    with llm.Engine(model, max_rows=2, max_tokens_per_step=48) as engine:
        request = engine.submit(PROMPTS[2], adapter="one", max_tokens=60, logprobs=0)
        with pytest.raises(llm.ModelError, match="no such module"):
            engine.load_adapter(tmp_path / "bad")
        with pytest.raises(llm.ModelError, match="loaded already"):
            engine.load_adapter(folders / "odd", "one")
        assert_alike(request.result(60), alone(PROMPTS[2], "one", 60))
    with pytest.raises(llm.EngineClosed):
        engine.load_adapter(folders / "odd")


def test_a_model_that_an_engine_runs_loads_through_it(folders, alone):
    model = make_model(folders, "one")
    with llm.Engine(model, max_rows=2, max_tokens_per_step=48) as engine:
        engine.between_steps(lambda: None).result(60)
        with pytest.raises(Error, match=r"its load_adapter\(\) loads adapters between"):
            model.load_adapter(folders / "odd")
        assert list(model.adapters) == ["one"]
    model.load_adapter(folders / "odd")
    made = model.generate(PROMPTS[0], adapter="odd", max_tokens=12, logprobs=0)
    assert_alike(made, alone(PROMPTS[0], "odd"))


def test_an_adapter_that_goes_while_a_request_comes_ends_it(folders, monkeypatch):
    model = make_model(folders, "one")
    real = Adapters.place

    def place(self, name):
        found = real(self, name)
        self._loaded.pop(name, None)  # as another thread may
        return found

    with llm.Engine(model, max_rows=2, max_tokens_per_step=48) as engine:
        monkeypatch.setattr(Adapters, "place", place)
        with pytest.raises(llm.ModelError, match="'one' was unloaded meanwhile"):
            engine.submit(PROMPTS[0], adapter="one", max_tokens=90)
        engine.submit(PROMPTS[0], max_tokens=2).result(60)
        assert engine.stats()["aborted"] == 1


def test_a_deterministic_engine_gives_the_same_bits_beside_any_adapter(folders):
    model = make_model(folders, "one", "odd")

    def texts(*adapters):
        with llm.Engine(model, max_rows=3, max_tokens_per_step=32, deterministic=True) as engine:
            asked = [engine.submit(PROMPTS[0], adapter=each, max_tokens=4, logprobs=2)
                     for each in adapters]  # fmt: skip
            return [(made.tokens, made.logprobs) for made in (each.result(60) for each in asked)]

    plain, one, odd = texts(None, "one", "odd")
    assert texts(None) == [plain]
    assert texts("odd", "one") == [odd, one]
