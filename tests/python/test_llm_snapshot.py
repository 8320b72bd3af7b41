"""Snapshots of conversations: texts go on as without them, and nothing is computed again."""

import textwrap

import numpy as np
import pytest
from adapter_files import adapter_written
from children import run_child
from serving import TINY
from summing_model import expected, make, make_model

import kernwright as kw
from kernwright import llm
from kernwright.errors import ArgumentError, InvalidArgument, StoreError
from kernwright.llm._sampling import Sampling

FIELDS = {
    "architectures": ["LlamaForCausalLM"], "vocab_size": 96, "hidden_size": 64,
    "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 256, "dtype": "float16",
}  # fmt: skip
TEXT = [(7 * i * i + 3 * i) % 96 for i in range(75)]


def random_model(cache_dtype=None, **fields):
    return llm.load(random={**FIELDS, **fields}, kv_dtype=cache_dtype)


def stats(model):
    return model._generator._engine.stats()


def counts(model):
    found = stats(model)
    return found["prompt_tokens"], found["shared_tokens"]


@pytest.mark.parametrize("cache_dtype", [None, "int8", "float8_e4m3fn", "float8_e5m2"])
def test_a_text_goes_on_as_without_its_snapshot(tmp_path, cache_dtype):
    first = random_model(cache_dtype)
    snapshot = first.snapshot(TEXT)
    wanted = first.generate(TEXT, max_tokens=20, logprobs=1)  # computes 11 tokens of it, too
    assert snapshot.tokens == TEXT[:64]
    snapshot.save(tmp_path / "chat.safetensors")
    # A model of the same weights that computes nothing but the last 11 tokens.
    second = random_model(cache_dtype)
    second.restore(llm.Snapshot.load(tmp_path / "chat.safetensors"))
    assert stats(second)["steps"] == 0 and stats(second)["cached_pages"] == 4
    made = second.generate(TEXT, max_tokens=20, logprobs=1)
    assert made.tokens == wanted.tokens
    ours, theirs = ([each.logprob for each in x.logprobs] for x in (made, wanted))
    assert np.allclose(ours, theirs, atol=1e-5)
    assert counts(second) == (75, 64)


def test_the_file_has_the_bytes_of_the_pages(tmp_path):
    """The reference: caches of the dtype of the weights."""
    model = random_model("int8")
    model.snapshot(TEXT).save(tmp_path / "chat.safetensors")
    found = kw.load_safetensors(tmp_path / "chat.safetensors")
    kinds = {"keys": "int8", "values": "int8", "key_scale": "float32", "value_scale": "float32"}
    assert {name: array.dtype.name for name, array in found.items() if name != "tokens"} == {
        f"layers.{layer}.{name}": kind for layer in range(2) for name, kind in kinds.items()
    }
    assert found["tokens"].numpy().tolist() == TEXT[:64]
    assert found["layers.1.keys"].shape == (4, 16, 2, 16)
    assert found["layers.1.key_scale"].shape == (4, 16, 2)
    exact = random_model(None).snapshot(TEXT)._arrays["layers.0.values"].numpy()
    read = found["layers.0.values"].numpy() * found["layers.0.value_scale"].numpy()[..., None]
    assert np.abs(exact).max() > 0.01
    assert np.allclose(read, exact, atol=np.abs(exact).max() / 120)


def test_what_is_known_is_not_computed_for_a_snapshot():
    model = make_model()
    made = model.generate([5, 6, 7], max_tokens=40)
    chat = [5, 6, 7, *made.tokens]
    assert made.tokens == expected([5, 6, 7], 40)
    before = counts(model)
    snapshot = model.snapshot(chat)
    assert snapshot.tokens == chat[:32]
    assert [after - was for was, after in zip(before, counts(model), strict=True)] == [43, 32]
    other = make_model()
    other.restore(snapshot)
    assert other.generate([*chat, 1], max_tokens=9).tokens == expected([*chat, 1], 9)
    assert counts(other) == (44, 32)
    other.restore(snapshot)  # once more: everything is there
    assert stats(other)["cached_pages"] == 3


@pytest.mark.parametrize("length", [16, 17, 31, 32, 95, 96])
def test_snapshots_at_the_edges_of_pages_and_of_the_context(length):
    model = make_model()
    text = [(5 * i) % 61 for i in range(length)]
    snapshot = model.snapshot(text)
    full = min(length, 95) // 16 * 16
    assert snapshot.tokens == text[:full]
    assert snapshot.nbytes == full * 2 * 16 * 4
    other = make_model()
    other.restore(snapshot)
    more = text[:94]
    assert other.generate(more, max_tokens=2).tokens == expected(more, 2)
    assert counts(other)[1] == min(full, (len(more) - 1) // 16 * 16)


def test_a_restored_conversation_leaves_place_to_go_on():
    model = random_model(max_position_embeddings=2048)
    long = TEXT * 14
    other = random_model(max_position_embeddings=2048)
    other.restore(model.snapshot(long), max_tokens=900)
    made = other.generate(long, max_tokens=890, stop_tokens=list(range(96)))
    assert len(made.tokens) == 1
    assert counts(other) == (1050, 1040)


def test_another_process_goes_on(tmp_path):
    model = llm.load(TINY)
    text = "def read(path):\n    with open(path) as file:\n"
    path = tmp_path / "chat.safetensors"
    snapshot = model.snapshot(text)
    snapshot.save(path)
    ended = run_child(textwrap.dedent(f"""
        from kernwright import llm
        model = llm.load({TINY!r})
        model.restore(llm.Snapshot.load({str(path)!r}))
        print(repr(model.generate({text!r}, max_tokens=12).text))
        print(model._generator._engine.stats()["shared_tokens"])
    """), KERNWRIGHT_DEVICE="sim")  # fmt: skip
    assert (ended.code, ended.err) == (0, "")
    count = len(model.tokenizer.encode(text))
    shared = min(len(snapshot.tokens), (count - 1) // 16 * 16)
    assert shared > 0
    assert ended.out.splitlines() == [repr(model.generate(text, max_tokens=12).text), str(shared)]


def adapted_model(folder, **settings):
    """A model with an adapter that is called sql."""
    modules = {"model.layers.0.self_attn.v_proj": (32, 64), "model.layers.1.mlp.up_proj": (64, 64)}
    if not folder.exists():
        adapter_written(folder, modules, **settings)
    model = random_model()
    model.load_adapter(folder, "sql")
    return model


def test_a_text_goes_on_with_its_adapter(tmp_path):
    first = adapted_model(tmp_path / "a")
    options = {"max_tokens": 20, "logprobs": 1}
    plain = first.generate(TEXT, **options)
    snapshot = first.snapshot(TEXT, adapter="sql")
    snapshot.save(tmp_path / "sql.safetensors")
    wanted = first.generate(TEXT, adapter="sql", **options)
    assert wanted.tokens != plain.tokens
    second = adapted_model(tmp_path / "a")
    second.restore(llm.Snapshot.load(tmp_path / "sql.safetensors"), adapter="sql")
    made = second.generate(TEXT, adapter="sql", **options)
    assert made.tokens == wanted.tokens and counts(second) == (75, 64)
    chances = [[each.logprob for each in x.logprobs] for x in (made, wanted)]
    assert np.allclose(*chances, atol=1e-5)
    # The pages are those of the adapter: a text without one does not find them.
    again = second.generate(TEXT, **options)
    assert again.tokens == plain.tokens and counts(second) == (150, 64)


def test_snapshots_of_other_adapters_are_refused(tmp_path):
    model = adapted_model(tmp_path / "a")
    snapshot, plain = model.snapshot(TEXT, adapter="sql"), model.snapshot(TEXT)
    with pytest.raises(llm.ModelError, match=r"its adapter is .*'rank': 4.* this model None"):
        model.restore(snapshot)
    with pytest.raises(llm.ModelError, match=r"its adapter is None, .*'rank': 4"):
        model.restore(plain, adapter="sql")
    other = adapted_model(tmp_path / "b", rank=7)
    with pytest.raises(llm.ModelError, match="'rank': 7"):
        other.restore(snapshot, adapter="sql")
    for call in (model.snapshot, lambda text, adapter: model.restore(plain, adapter=adapter)):
        with pytest.raises(llm.ModelError, match="no adapter 'verses'; there are sql"):
            call(TEXT, adapter="verses")
    model.unload_adapter("sql")
    with pytest.raises(llm.ModelError, match="no adapter 'sql'"):
        model.restore(snapshot, adapter="sql")


def test_snapshots_of_other_models_are_refused():
    snapshot = random_model().snapshot(TEXT)
    for other, message in (
        (random_model(intermediate_size=96), r"its intermediate_size is 64, .* this model 96"),
        (random_model(max_position_embeddings=512), "max_length is 256"),
        (random_model("int8"), "dtype of the caches is 'float16', .* 'int8'"),
        (random_model(attention_bias=False), "fields.attention_bias is None"),
    ):
        with pytest.raises(llm.ModelError, match=message):
            other.restore(snapshot)
        assert other._generator._engine is None


def test_arrays_that_do_not_fit_are_refused_and_leave_nothing():
    model = random_model()
    snapshot = model.snapshot(TEXT)
    names = dict(snapshot._arrays)
    keys = names.pop("layers.1.keys")
    for arrays, message in (
        (names, "layers.1.keys of 4 pages is .* has none"),
        ({**names, "layers.1.keys": keys[:3]}, r"has \(3, 16, 2, 16\)"),
        ({**names, "layers.1.keys": keys.astype("float32")}, "of float32"),
    ):
        other = random_model()
        with pytest.raises(llm.ModelError, match=message):
            other.restore(llm.Snapshot(snapshot.tokens, arrays, snapshot._identity))
        assert stats(other)["cached_pages"] == 0
    odd = llm.Snapshot(snapshot.tokens[:-1], snapshot._arrays, snapshot._identity)
    with pytest.raises(llm.ModelError, match="full pages of 16 tokens, got 63"):
        model.restore(odd)


def test_wrong_calls_and_files(tmp_path):
    model = make_model()
    with pytest.raises(llm.ModelError, match=r"full pages of 16 tokens, and the .* has 15"):
        model.snapshot(list(range(15)))
    with pytest.raises(llm.ContextError, match="97"):
        model.snapshot([1] * 97)
    with pytest.raises(ArgumentError, match=r"takes an llm.Snapshot, got 'chat'"):
        model.restore("chat")
    snapshot = model.snapshot(list(range(20)))
    assert repr(snapshot) == "<llm.Snapshot of 16 tokens, 2,048 bytes>"
    for wrong in (0, True, 1.5):
        with pytest.raises(ArgumentError, match="max_tokens is an int above 0"):
            model.restore(snapshot, max_tokens=wrong)
    with pytest.raises(StoreError) as caught:
        llm.Snapshot.load(tmp_path / "none.safetensors")
    assert isinstance(caught.value, llm.ModelError)
    damaged = {"format": "kernwright.llm.Snapshot 1", "model": "[1"}
    kw.save_safetensors(tmp_path / "x.safetensors", {"tokens": kw.ones(2)}, metadata=damaged)
    with pytest.raises(llm.ModelError, match="of which model it is a snapshot"):
        llm.Snapshot.load(tmp_path / "x.safetensors")
    kw.save_safetensors(tmp_path / "other.safetensors", {"tokens": kw.ones(2)})
    with pytest.raises(llm.ModelError, match=r"other.safetensors is no snapshot"):
        llm.Snapshot.load(tmp_path / "other.safetensors")


def test_running_sequences_keep_their_pages():
    engine = make(pages=30)
    text = [(3 * i) % 61 for i in range(64)]
    arrays = engine.read_pages(text)
    full = make(pages=30)
    streams = [full.stream([i, 2, 3], Sampling(max_tokens=70)) for i in range(2)]
    tokens = [[next(each).token for _ in range(40)] for each in streams]
    with pytest.raises(InvalidArgument, match="a text of 64 tokens needs 16 pages of 4 tokens"):
        full.write_pages(text, arrays)
    tokens = [[*made, *(p.token for p in each)] for made, each in zip(tokens, streams, strict=True)]
    assert tokens == [expected([i, 2, 3], 70) for i in range(2)]
    full.write_pages(text, arrays)
    before = full.stats()["shared_tokens"]
    made = full.run([[*text, 9]], Sampling(max_tokens=5))[0][0].tokens
    assert made == expected([*text, 9], 5)
    assert full.stats()["shared_tokens"] - before == 64
