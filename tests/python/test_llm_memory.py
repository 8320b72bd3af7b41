"""Weights on their way: host memory while loading; layers that stay on the host."""

import gc
import importlib
import json
import os
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest

import kernwright as kw
from kernwright import llm
from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.llm import _fill
from kernwright.llm._weights.experts import ExpertCache
from kernwright.llm._weights.memory import budget_bytes, chosen_layers, needed_bytes

LLAMA = {
    "architectures": ["LlamaForCausalLM"], "vocab_size": 48, "hidden_size": 32,
    "intermediate_size": 64, "num_hidden_layers": 5, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 64, "dtype": "float32",
}  # fmt: skip
GEMMA = LLAMA | {
    "architectures": ["Gemma2ForCausalLM"], "head_dim": 8, "sliding_window": 4,
    "hidden_activation": "gelu_pytorch_tanh", "query_pre_attn_scalar": 8,
    "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0, "tie_word_embeddings": True,
}  # fmt: skip
MOE = LLAMA | {
    "architectures": ["Qwen3MoeForCausalLM"], "head_dim": 8, "num_experts": 4,
    "num_experts_per_tok": 2, "moe_intermediate_size": 16, "num_hidden_layers": 3,
    "dtype": "bfloat16",
}  # fmt: skip
PROMPTS = [[5, 6, 7, 8, 9, 10, 11], [3]]

LOADING = """
import resource, sys
import kernwright as kw
from kernwright import llm
kw.ones(4).numpy()
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
before = peak()
model = llm.load(sys.argv[1])
print(peak() - before, kw.memory.stats()["used_peak"], model.memory.device_bytes)
"""


def used():
    return kw.memory.stats()["used"]


def test_host_memory_while_loading(sim, tmp_path):
    """Beside the device's memory, which is the host's here, there are only page-locked pieces: the
    growth of the process less what the device had at most is far less than the file."""
    fields = LLAMA | {"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 3}
    (tmp_path / "config.json").write_text(json.dumps(fields))
    shapes = {"model.embed_tokens.weight": (48, 1024), "model.norm.weight": (1024,),
              "lm_head.weight": (48, 1024)}  # fmt: skip
    for i in range(3):
        block = f"model.layers.{i}."
        for name in ("input_layernorm", "post_attention_layernorm"):
            shapes[f"{block}{name}.weight"] = (1024,)
        for name, rows in (("q", 1024), ("k", 512), ("v", 512), ("o", 1024)):
            shapes[f"{block}self_attn.{name}_proj.weight"] = (rows, 1024)
        for name in ("gate", "up"):
            shapes[f"{block}mlp.{name}_proj.weight"] = (4096, 1024)
        shapes[f"{block}mlp.down_proj.weight"] = (1024, 4096)
    header, end = {}, 0
    for name, shape in shapes.items():
        size = 4 * int(np.prod(shape))
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with (tmp_path / "model.safetensors").open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + end)  # zeros that take no disk
    environment = {**os.environ, "KERNWRIGHT_DEVICE": "sim"}
    out = subprocess.run([sys.executable, "-c", LOADING, str(tmp_path)], env=environment,
                         check=True, capture_output=True, text=True).stdout  # fmt: skip
    growth, device_peak, weights = map(int, out.split())
    assert weights == end
    assert end <= device_peak <= 1.01 * end  # fused weights are filled in their places
    largest = 4 * 4096 * 1024
    threads = min(os.cpu_count() or 1, 8)
    buffers = threads * 2 * (4 << 20)
    assert growth - device_peak < 1.2 * largest + buffers + (8 << 20)
    assert 1.2 * largest + buffers + (8 << 20) < end  # so that a copy of the file would show


def files_of(folder, dtype):
    """A model in two files, and its tensors."""
    draws = np.random.default_rng(3)
    shapes = {"model.embed_tokens.weight": (48, 32), "model.norm.weight": (32,),
              "lm_head.weight": (48, 32)}  # fmt: skip
    for i in range(5):
        block = f"model.layers.{i}."
        shapes |= {f"{block}{name}.weight": (32,)
                   for name in ("input_layernorm", "post_attention_layernorm")}  # fmt: skip
        for name, shape in (
            ("self_attn.q", (32, 32)), ("self_attn.k", (16, 32)), ("self_attn.v", (16, 32)),
            ("self_attn.o", (32, 32)), ("mlp.gate", (64, 32)), ("mlp.up", (64, 32)),
            ("mlp.down", (32, 64)),
        ):  # fmt: skip
            shapes[f"{block}{name}_proj.weight"] = shape
    arrays = {
        name: kw.asarray(0.3 * draws.standard_normal(shape).astype(np.float32)).astype(dtype)
        for name, shape in shapes.items()
    }
    (folder / "config.json").write_text(json.dumps(LLAMA))
    names, weight_map = list(arrays), {}
    for i, some in enumerate((names[::2], names[1::2])):
        part = f"model-{i + 1}-of-2.safetensors"
        kw.save_safetensors(folder / part, {name: arrays[name] for name in some})
        weight_map |= dict.fromkeys(some, part)
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": weight_map}))
    return arrays


@pytest.mark.parametrize("batch", [1, 128 << 20])
@pytest.mark.parametrize("memory", ["device", "stream"])
def test_other_dtypes_of_several_files(tmp_path, monkeypatch, batch, memory):
    """Tensors are converted on the device, read one by one or many at once."""
    monkeypatch.setattr(_fill, "_BATCH_BYTES", batch)
    arrays = files_of(tmp_path, "float16")
    model = llm.load(tmp_path, memory=memory)
    expected = arrays["model.embed_tokens.weight"].numpy().astype(np.float32)
    np.testing.assert_array_equal(model.module.embedding.weight.numpy(), expected)
    reference = llm.load(tmp_path, memory="device").logits([1, 2, 3])
    np.testing.assert_array_equal(model.logits([1, 2, 3]).numpy(), reference.numpy())
    if memory == "device":
        parts = [arrays[f"model.layers.3.self_attn.{x}_proj.weight"].numpy() for x in "qkv"]
        found = model.module.layers[3].attention.qkv.weight.numpy()
        np.testing.assert_array_equal(found, np.concatenate(parts).astype(np.float32))


@pytest.mark.parametrize(
    ("config", "options"),
    [(LLAMA, {}), (GEMMA, {}), (MOE, {}), (LLAMA, {"quantize": "q8_0"}),
     (LLAMA, {"quantize": "int8"})],
    ids=["llama", "gemma2", "moe", "q8_0", "int8"],
)  # fmt: skip
def test_streamed_layers_give_the_same_bits(config, options):
    resident = llm.load(random=config, memory="device", **options)
    streamed = llm.load(random=config, memory="stream", **options)
    layers = config["num_hidden_layers"]
    assert resident.memory == ("device", resident.memory.device_bytes, 0, layers, 0, 0)
    assert streamed.memory[3:] == (0, layers, 0)
    for prompt in PROMPTS:
        for _ in range(2):  # the ring begins anew
            np.testing.assert_array_equal(
                streamed.logits(prompt).numpy(), resident.logits(prompt).numpy()
            )
    for settings in ({}, {"temperature": 1.0, "seed": 3, "logprobs": 2}):
        expected = resident.generate(PROMPTS, max_tokens=6, **settings)
        made = streamed.generate(PROMPTS, max_tokens=6, **settings)
        assert [each.tokens for each in made] == [each.tokens for each in expected]
        assert [each.logprobs for each in made] == [each.logprobs for each in expected]
    np.testing.assert_array_equal(streamed.embed([1, 2]).numpy(), resident.embed([1, 2]).numpy())


def test_a_budget_is_kept():
    whole = llm.load(random=LLAMA, memory="device")
    expected = whole.logits(PROMPTS[0]).numpy()
    total = whole.memory.device_bytes
    sizes = [a.nbytes for _, a in whole.module.layers[0].named_parameters()]
    rest = total - 5 * sum(sizes)
    layer = sum(-(-size // 256) * 256 for size in sizes)  # as it lies in the ring
    found = []
    for budget in (rest + 2 * layer, rest + 3 * layer, total - 1, rest + 5 * layer):
        gc.collect()  # what earlier tests left
        before = used()
        model = llm.load(random=LLAMA, memory="stream", budget=budget)
        assert used() - before == model.memory.device_bytes <= budget
        assert model.memory.resident_layers + model.memory.streamed_layers == 5
        found.append(model.memory.resident_layers)
        before = kw.memory.transfers()["to_device_bytes"]
        np.testing.assert_array_equal(model.logits(PROMPTS[0]).numpy(), expected)
        copied = kw.memory.transfers()["to_device_bytes"] - before
        assert model.memory.host_bytes <= copied < model.memory.host_bytes + 1000
        assert model.generate(PROMPTS[0], max_tokens=3).tokens == (
            whole.generate(PROMPTS[0], max_tokens=3).tokens
        )
        del model
    assert found == [0, 1, 2, 5]  # the ring has two layers
    least = rest + 2 * layer
    with pytest.raises(llm.ModelError, match=f"smallest that works is {least:,}: {rest:,} of"):
        llm.load(random=LLAMA, memory="stream", budget=least - 1)


def test_sizes_that_turn_out_larger_than_planned(monkeypatch):
    """Of packed weights the sizes are known when they are made: what no longer fits goes to the
    host, too."""
    whole = llm.load(random=LLAMA, memory="device", quantize="q8_0")
    monkeypatch.setattr(_fill, "quantised_share", lambda format, device: 0.01)
    total = whole.memory.device_bytes
    model = llm.load(random=LLAMA, memory="stream", quantize="q8_0", budget=total - 1)
    assert model.memory.mode == "stream"
    assert model.memory.device_bytes < total
    np.testing.assert_array_equal(model.logits([1, 2]).numpy(), whole.logits([1, 2]).numpy())
    least = re.compile("smallest that works is ([0-9,]+):")
    with pytest.raises(llm.ModelError, match=least) as error:
        llm.load(random=LLAMA, memory="stream", quantize="q8_0", budget=20_000)
    found = int(least.search(str(error.value))[1].replace(",", ""))
    assert llm.load(random=LLAMA, memory="stream", quantize="q8_0", budget=found)


def test_auto_says_what_it_chose():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert llm.load(random=LLAMA).memory.mode == "device"
        assert llm.load(random=LLAMA, budget="1MB").memory.mode == "device"
        assert llm.load(random=LLAMA, memory="stream").memory.mode == "stream"
    with pytest.warns(RuntimeWarning, match=r"weights, 19\d\S* KB, do not fit into 130 KB") as told:
        model = llm.load(random=LLAMA, memory="auto", budget=130_000)
    assert 'memory="auto" chose "stream": 4 of 5 layers' in str(told[0].message)
    assert str(model.memory) in str(told[0].message)
    assert model.memory.mode == "stream"
    assert model.memory.device_bytes <= 130_000


def test_auto_without_a_budget_takes_what_is_free(monkeypatch):
    """Beside weights it leaves room for the keys and values of a prompt: of 4096 tokens, or of the
    context."""
    from kernwright.llm._weights import memory

    token = 5 * 2 * 2 * 8 * 4
    whole = llm.load(random=LLAMA, memory="device")
    padding = 5 * 2 * 128  # of norms in the ring
    enough = (whole.memory.device_bytes + padding + 64 * token) * 16 // 15 + 2
    monkeypatch.setattr(memory, "available_bytes", lambda device: enough)
    assert llm.load(random=LLAMA).memory.mode == "device"
    monkeypatch.setattr(memory, "available_bytes", lambda device: enough - 4)
    with pytest.warns(RuntimeWarning):
        assert llm.load(random=LLAMA).memory.mode == "stream"
    long = LLAMA | {"max_position_embeddings": 10_000}
    enough += (4096 - 64) * token * 16 // 15 + 6
    assert llm.load(random=long).memory.mode == "device"
    enough = 100_004
    message = (
        r'memory="auto" has 52.79 KB for the weights, 100 KB that are free less a sixteenth and'
    )
    with pytest.raises(llm.ModelError, match=message + " 40.96 KB for keys and values; the small"):
        llm.load(random=LLAMA)


def test_texts_of_several_engines_in_turns():
    """Graphs of two engines, on streams of their own, share the ring."""
    resident = llm.load(random=LLAMA, memory="device")
    streamed = llm.load(random=LLAMA, memory="stream")
    expected = resident.generate(PROMPTS[0], max_tokens=8).tokens
    first = streamed.stream(PROMPTS[0], max_tokens=8)
    tokens = [next(first).token]
    others = [[i + 1, i + 2] for i in range(5)]  # more rows: a new engine
    while len(tokens) < 8:
        made = streamed.generate(others[: 5 if len(tokens) < 4 else 2], max_tokens=2)
        assert [each.tokens for each in made] == [
            each.tokens for each in resident.generate(others[: len(made)], max_tokens=2)
        ]
        tokens.append(next(first).token)
    assert tokens == expected
    np.testing.assert_array_equal(streamed.logits([9]).numpy(), resident.logits([9]).numpy())


def test_an_error_within_a_step_leaves_the_model_usable(monkeypatch):
    model = llm.load(random=LLAMA, memory="stream")
    expected = model.logits([1, 2]).numpy()
    layer = type(model.module.layers[3]._layer)
    call = layer.__call__

    def fails(self, *args, **kwargs):
        if self is model.module.layers[3]._layer:
            raise RuntimeError("half way")
        return call(self, *args, **kwargs)

    monkeypatch.setattr(layer, "__call__", fails)
    with pytest.raises(RuntimeError, match="half way"):
        model.logits([1, 2])
    with pytest.raises(RuntimeError, match="half way"):
        model.generate([1, 2])
    monkeypatch.undo()
    np.testing.assert_array_equal(model.logits([1, 2]).numpy(), expected)
    assert len(model.generate([1, 2], max_tokens=2).tokens) == 2


def test_streamed_weights_are_no_parameters():
    model = llm.load(random=LLAMA, memory="stream")
    assert set(model.parameters) == {"embedding", "norm", "head"}
    assert "StreamedLayer(Block, streamed)" in repr(model.module)
    for call in (
        lambda: model.module.save("never.safetensors"), lambda: model.module.copy(),
        lambda: model.module.astype("float16"), lambda: model.module.to(model.device),
        lambda: model.module.load({}),
    ):  # fmt: skip
        with pytest.raises(InvalidArgument, match="streamed layer are in the host's memory"):
            call()


class Backwards(llm.models.Llama):
    """Layers in another order than that of their list."""

    def hidden(self, step):
        x = self.embedding(step.tokens)
        for layer in reversed(self.layers):
            x = layer(x, step)
        return self.norm(step.select(x))


class NoLayers(llm.models.Llama):
    def __init__(self, config):
        super().__init__(config)
        self._hidden_layers, self.layers = self.layers, ()


def test_modules_that_cannot_be_streamed(monkeypatch):
    registry = importlib.import_module("kernwright.llm._registry")
    monkeypatch.setattr(registry, "_registered", {})
    llm.register("Backwards", Backwards)
    model = llm.load(random=LLAMA | {"architectures": ["Backwards"]}, memory="stream")
    with pytest.raises(llm.ModelError, match=r"layers\.4 runs where layers\.0 is next"):
        model.logits([1])
    llm.register("NoLayers", NoLayers)
    with pytest.raises(llm.ModelError, match="no list of layers to stream"):
        llm.load(random=LLAMA | {"architectures": ["NoLayers"]}, memory="stream")


def test_budgets_are_read():
    assert budget_bytes("auto", None) is None
    assert budget_bytes("stream", 7) == 7
    assert budget_bytes("auto", "4GB") == 4_000_000_000
    assert budget_bytes("auto", " 1.5 MiB ") == 3 << 19
    assert budget_bytes("auto", "12") == 12
    for wrong in ("4 apples", "", "-3GB", True, 2.5, [1]):
        with pytest.raises(ArgumentError, match="a budget is as 4000000000"):
            budget_bytes("stream", wrong)
    with pytest.raises(InvalidArgument, match="above 0, got -1"):
        budget_bytes("stream", -1)
    with pytest.raises(
        ArgumentError, match="memory is one of auto, device, stream, experts, got 'disk'"
    ):
        llm.load(random=LLAMA, memory="disk")
    with pytest.raises(ArgumentError, match='memory="device" takes what'):
        llm.load(random=LLAMA, memory="device", budget=10)


def test_layers_that_stay_are_spread_evenly():
    for count in range(8):
        sizes = [100 + i for i in range(count)]
        for limit in range(0, 1200, 37):
            chosen = chosen_layers(50, sizes, limit)
            if chosen is None:
                assert 50 + sum(sorted(sizes)[-1:] * min(count, 2)) > limit
                continue
            streamed = [size for i, size in enumerate(sizes) if i not in chosen]
            ring = max(streamed, default=0) * min(len(streamed), 2)
            needed = 50 + sum(sizes[i] for i in chosen) + ring
            assert needed == needed_bytes(50, sizes, chosen) <= limit
            gaps = np.diff([-1, *sorted(chosen)])
            assert len(gaps) == 0 or gaps.max() - gaps.min() <= 1


def test_a_model_may_go_while_another_is_recorded():
    """Page-locked memory is given back after the capture, which would not survive that."""
    gone = llm.load(random=LLAMA, memory="stream")
    x, graph = kw.ones(4), kw.Graph()
    with graph.capture():
        x += 1
        del gone
        gc.collect()
        x += 1
    graph.launch()
    assert x.numpy().tolist() == [3.0] * 4


@pytest.mark.parametrize("budget", [None, "least", "all"])
def test_cached_experts_give_the_same_bits(budget):
    config = MOE | {"num_experts": 8}
    resident = llm.load(random=config, memory="device")
    one = 3 * 16 * 32 * 2
    rest = resident.memory.device_bytes - 3 * 8 * one
    slots = {None: 4, "least": 2, "all": 8}[budget]
    wanted = rest + 2 * 8 * one + 3 * slots * one
    gc.collect()
    before = used()
    model = llm.load(random=config, memory="experts", budget=budget and wanted)
    assert model.memory == ("experts", wanted, 3 * 8 * one, 0, 3, slots)
    assert wanted <= used() - before < wanted + 1000  # and a few words about the slots
    assert f"{slots} of each on the device" in str(model.memory)
    # one and two tokens go through the slots, as far as these suffice; seven through the ring
    for prompt in ([3], [1, 2], PROMPTS[0], [4]):
        found = model.logits(prompt).numpy()
        np.testing.assert_array_equal(found, resident.logits(prompt).numpy())
    for prompts in ([PROMPTS[0]], PROMPTS):
        expected = resident.generate(prompts, max_tokens=10, logprobs=1)
        made = model.generate(prompts, max_tokens=10, logprobs=1)
        assert [each.tokens for each in made] == [each.tokens for each in expected]
        assert [each.logprobs for each in made] == [each.logprobs for each in expected]
    np.testing.assert_array_equal(model.logits([9]).numpy(), resident.logits([9]).numpy())
    with pytest.raises(InvalidArgument, match="streamed layer are in the host's memory"):
        model.module.copy()


def test_slots_are_given_to_the_experts_that_were_used_last():
    count, slots = 12, 5
    draws = np.random.default_rng(7)
    first = draws.standard_normal((count, 4, 8)).astype(np.float32)
    second = draws.standard_normal((count, 8, 2)).astype(np.float32)
    host = kw.pinned((first.nbytes + second.nbytes,), "uint8")
    host[:] = np.concatenate([first.reshape(-1), second.reshape(-1)]).view(np.uint8)
    cache = ExpertCache(host, first.nbytes, kw.asarray(first), kw.asarray(second), slots)
    last_use = {}  # of the experts that are there
    for step in range(60):
        tokens = int(draws.integers(1, 3))
        wanted = np.stack([draws.permutation(count)[:2] for _ in range(tokens)]).astype(np.int32)
        chosen = cache.load(kw.asarray(wanted)).numpy()
        assert chosen.shape == wanted.shape
        np.testing.assert_array_equal(cache.gate_up.numpy()[chosen], first[wanted])
        np.testing.assert_array_equal(cache.down.numpy()[chosen], second[wanted])
        needed = list(dict.fromkeys(wanted.reshape(-1).tolist()))
        missing = [each for each in needed if each not in last_use]
        found = cache._loads.numpy()
        assert found[1 : 1 + 2 * found[0] : 2].tolist() == missing
        before = last_use | dict.fromkeys(needed, step)
        last_use = {each: before[each] for each in cache._expert_of.numpy().tolist() if each >= 0}
        assert set(needed) <= set(last_use)
        assert len(last_use) == min(slots, len(before))
        gone = [before[each] for each in before if each not in last_use]
        assert max(gone, default=-1) <= min(last_use.values())  # of one step either may go
    with pytest.raises(InvalidArgument, match="6 experts have no place in 5 slots"):
        cache.load(kw.zeros((3, 2), "int32"))


def test_experts_need_a_mixture_and_a_budget():
    with pytest.raises(llm.ModelError, match=r"is for mixtures of llm\.models\.Experts"):
        llm.load(random=LLAMA, memory="experts")
    message = re.compile("smallest that works is ([0-9,]+): ")
    with pytest.raises(llm.ModelError, match=message) as error:
        llm.load(random=MOE, memory="experts", budget=1000)
    least = int(message.search(str(error.value))[1].replace(",", ""))
    assert llm.load(random=MOE, memory="experts", budget=least).memory.device_bytes == least
    with pytest.raises(llm.ModelError, match=message):
        llm.load(random=MOE, memory="experts", budget=least - 1)
