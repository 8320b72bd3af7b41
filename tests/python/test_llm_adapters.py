"""LoRA adapters against weights that have them merged in, and files that are wrong."""

import json

import numpy as np
import pytest
from adapter_files import adapter_written, merged
from model_files import arrays_of, fields_of, gguf_written, shapes_of, written

import kernwright as kw
from kernwright import llm
from kernwright.errors import ArgumentError, InvalidArgument

PROMPT = [5, 6, 7, 1, 2, 3, 9, 30, 21, 4, 8]


def modules_of(shapes, words):
    """(outputs, inputs) of the layers with one of these words in their names."""
    found = {}
    for name, shape in shapes.items():
        module = name.removesuffix(".weight")
        if name.endswith(".weight") and len(shape) == 2 and module.rpartition(".")[2] in words:
            found[module] = shape[::-1] if name.startswith(("h.", "transformer.")) else shape
    return found


def merged_model(folder, fields, arrays, deltas):
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(fields))
    kw.save_safetensors(folder / "model.safetensors", merged(arrays, deltas))
    return llm.load(folder)


def distance(made, expected):
    return np.linalg.norm(made - expected) / np.linalg.norm(expected)


ATTENTION = ("q_proj", "k_proj", "v_proj", "o_proj")
DENSE = (*ATTENTION, "gate_proj", "up_proj", "down_proj")
FAMILIES = {
    "llama": (*DENSE, "lm_head"),
    "gpt2": ("c_attn", "c_proj", "c_fc"),
    "phi3": ("qkv_proj", "o_proj", "gate_up_proj", "down_proj"),
    "starcoder2": (*ATTENTION, "c_fc", "down_proj"),
    "gemma3": DENSE,
    "glm4": (*ATTENTION, "gate_up_proj", "down_proj"),
    "qwen2_moe": (*DENSE, "gate", "shared_expert_gate"),
    "qwen3_moe": (*ATTENTION, "gate"),
    "deepseek_v2": ("q_proj", "kv_a_proj_with_mqa", "kv_b_proj", "o_proj"),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_logits_are_those_of_merged_weights(name, tmp_path):
    fields = fields_of(name, dtype="float32")
    shapes = shapes_of(fields)
    modules = modules_of(shapes, FAMILIES[name])
    modules = {each: shape for each, shape in modules.items() if ".experts." not in each}
    assert {each.rpartition(".")[2] for each in modules} == set(FAMILIES[name])
    model = llm.load(written(tmp_path / "base", name, dtype="float32"))
    plain = model.logits(PROMPT).numpy()
    deltas = adapter_written(tmp_path / "a", modules, rank=5, std=0.1)
    adapter = model.load_adapter(tmp_path / "a")
    assert (adapter.name, adapter.rank, model.adapters) == ("a", 5, {"a": adapter})
    assert set(adapter.targets) == {each.rpartition(".")[2] for each in modules}

    whole = merged_model(tmp_path / "merged", fields, arrays_of(shapes, "float32"), deltas)
    expected = whole.logits(PROMPT).numpy()
    assert distance(model.logits(PROMPT, adapter="a").numpy(), expected) < 1e-5
    assert distance(plain, expected) > 0.01
    assert np.array_equal(model.logits(PROMPT).numpy(), plain)
    if name in ("llama", "gpt2"):
        made = model.embed([PROMPT, [3]], adapter="a").numpy()
        assert distance(made, whole.embed([PROMPT, [3]]).numpy()) < 1e-5
        assert abs(model.perplexity(PROMPT, adapter="a") / whole.perplexity(PROMPT) - 1) < 1e-5
        options = {"max_tokens": 5, "logprobs": 0, "ignore_eos": True}
        one, other = (
            model.generate(PROMPT, adapter="a", **options),
            whole.generate(PROMPT, **options),
        )
        assert one.tokens == other.tokens
        chances = [[each.logprob for each in made.logprobs] for made in (one, other)]
        assert np.allclose(*chances, atol=1e-4)


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    """A folder, its fields and its arrays."""
    folder = tmp_path_factory.mktemp("models") / "base"
    fields = fields_of("llama", dtype="float32")
    return (
        written(folder, "llama", dtype="float32"),
        fields,
        arrays_of(shapes_of(fields), "float32"),
    )


@pytest.fixture(scope="module")
def model(llama):
    """Adapters are loaded and unloaded by each test."""
    return llm.load(llama[0], max_adapters=3, max_adapter_rank=40)


@pytest.fixture(autouse=True)
def unloaded(request):
    yield
    if "model" in request.fixturenames:
        model = request.getfixturevalue("model")
        for name in model.adapters:
            model.unload_adapter(name)


LAYERS = modules_of(shapes_of(fields_of("llama", dtype="float32")), DENSE)


@pytest.mark.parametrize(
    ("rank", "settings"),
    [
        (1, {"alpha": 3}),
        (8, {"use_rslora": True}),
        ({name: 1 + 7 * i % 33 for i, name in enumerate(LAYERS)}, {}),
        (2, {"target_modules": r".*\.(q|v)_proj"}),
        (33, {"target_modules": "all-linear"}),
    ],
)
def test_ranks_and_scales(rank, settings, model, llama, tmp_path):
    some = LAYERS
    if "v)" in str(settings.get("target_modules")):
        some = {name: shape for name, shape in LAYERS.items() if name[-6] in "qv"}
    if settings.get("use_rslora"):
        settings = settings | {"alpha": 8}
    deltas = adapter_written(tmp_path / "a", some, rank, std=0.1, **settings)
    model.load_adapter(tmp_path / "a", "one")
    expected = merged_model(tmp_path / "merged", llama[1], llama[2], deltas).logits(PROMPT)
    assert distance(model.logits(PROMPT, adapter="one").numpy(), expected.numpy()) < 1e-5


def test_alpha_patterns_and_names_with_an_adapters_name(model, llama, tmp_path):
    name = "model.layers.1.mlp.down_proj"
    deltas = adapter_written(tmp_path / "a", {name: LAYERS[name]}, 4, alpha=4,
                             alpha_pattern={"layers.1.mlp.down_proj": 12})  # fmt: skip
    file = tmp_path / "a" / "adapter_model.safetensors"
    arrays = {key.replace(".weight", ".default.weight"): kw.asarray(each.numpy())
              for key, each in kw.load_safetensors(file).items()}  # fmt: skip
    kw.save_safetensors(file, arrays)
    model.load_adapter(tmp_path / "a")
    deltas = {name: 3 * deltas[name]}
    expected = merged_model(tmp_path / "merged", llama[1], llama[2], deltas).logits(PROMPT)
    assert distance(model.logits(PROMPT, adapter="a").numpy(), expected.numpy()) < 1e-5


@pytest.mark.parametrize(
    "options",
    [{"memory": "stream"}, {"quantize": "int8"}, {"quantize": "q8_0"}],
    ids=lambda each: next(iter(each.values())),
)
def test_any_format_of_weights_may_be_below(options, llama, tmp_path):
    """What an adapter adds does not depend on it: the difference to another scale is linear only
    for a first layer, so one layer alone is changed, the last."""
    model = llm.load(llama[0], **options)
    head = {"lm_head": (model.config.vocab_size, model.config.hidden_size)}
    delta = adapter_written(tmp_path / "a", head, 3)["lm_head"]
    plain = model.logits(PROMPT).numpy()
    hidden = model.module.hidden(llm.WholeStep([PROMPT], select="all")).numpy()
    model.load_adapter(tmp_path / "a")
    made = model.logits(PROMPT, adapter="a").numpy()
    assert distance(made, plain + hidden.astype(np.float64) @ delta.T) < 1e-5
    adapter_written(tmp_path / "b", LAYERS, 3, std=0.1)
    model.load_adapter(tmp_path / "b")
    assert distance(model.logits(PROMPT, adapter="b").numpy(), plain) > 0.01
    assert np.array_equal(model.logits(PROMPT).numpy(), plain)


def test_rows_of_gguf_files_are_found(llama, tmp_path):
    """Rows of queries and keys lie in another order there."""
    model = llm.load(gguf_written(tmp_path / "m.gguf", "llama", "float32"), dtype="float32")
    assert distance(model.logits(PROMPT).numpy(), llm.load(llama[0]).logits(PROMPT).numpy()) < 1e-5
    deltas = adapter_written(tmp_path / "a", LAYERS, 6, std=0.1)
    model.load_adapter(tmp_path / "a")
    expected = merged_model(tmp_path / "merged", llama[1], llama[2], deltas).logits(PROMPT)
    assert distance(model.logits(PROMPT, adapter="a").numpy(), expected.numpy()) < 1e-5


def test_bfloat16_is_close(llama, tmp_path):
    model = llm.load(llama[0], dtype="bfloat16")
    deltas = adapter_written(tmp_path / "a", LAYERS, 6, std=0.1)
    model.load_adapter(tmp_path / "a")
    merged = merged_model(tmp_path / "merged", llama[1], llama[2], deltas)
    for prompt in (PROMPT, (PROMPT * 6)[:64]):  # many tokens: by tensor cores
        expected = merged.logits(prompt).numpy()
        assert distance(model.logits(prompt, adapter="a").numpy(), expected) < 0.05
        assert distance(model.logits(prompt).numpy(), expected) > 0.1


def q_proj(folder, rank=2, **settings):
    name = "model.layers.0.self_attn.q_proj"
    adapter_written(folder, {name: LAYERS[name]}, rank, **settings)
    return folder


CONFIGS = {
    "use_dora is not supported": {"use_dora": True},
    "modules_to_save is not supported": {"modules_to_save": ["lm_head"]},
    "lora_bias is not supported": {"lora_bias": True},
    "trainable_token_indices": {"trainable_token_indices": [1]},
    'bias is "none"': {"bias": "lora_only"},
    'peft_type is "LORA"': {"peft_type": "IA3"},
    "r must be a whole number": {"r": "2"},
    "r has ranks from 1 to 2\\^31 - 1, got 0": {"r": 0},
    "r has ranks from 1 to 2\\^31 - 1, got a number of 1329 bits": {"r": 10**400},
    "rank_pattern has ranks from 1": {"rank_pattern": {"q_proj": "2"}},
    "lora_alpha is a finite number, got one of 1329 bits": {"lora_alpha": 10**400},
    "alpha_pattern is a finite number": {"alpha_pattern": {"q_proj": 10**400}},
    "has no field r": {"r": None},
    "has rank 2, and adapter_config.json tells rank 3": {"r": 3},
    "lora_alpha is a finite number": {"lora_alpha": float("inf")},
    "names k_proj, and adapter_model": {"target_modules": ["q_proj", "k_proj"]},
    "does not name model.layers.0.self_attn.q_proj": {"target_modules": ".*k_proj"},
    "is no pattern": {"target_modules": "("},
    "target_modules is a list": {"target_modules": 3},
    "alpha_pattern has numbers": {"alpha_pattern": {"q_proj": "x"}},
    "'\\(' is no pattern": {"rank_pattern": {"(": 3}},
}


@pytest.mark.parametrize("message", CONFIGS)
def test_wrong_configs_are_named(message, model, tmp_path):
    q_proj(tmp_path / "a", **CONFIGS[message])
    with pytest.raises(llm.ModelError, match=message):
        model.load_adapter(tmp_path / "a")
    assert model.adapters == {}


A, B = ("base_model.model.model.layers.0.self_attn.q_proj.lora_" + each for each in "AB")
EXPERT = "base_model.model.model.layers.0.mlp.experts.0.up_proj.lora_"
EMBEDDING = "base_model.model.model.embed_tokens.lora_"
TENSORS = {
    "has no lora_B.weight": {f"{A}.weight": (2, 128)},
    "has no tensors": {},
    "are the same tensor": {
        f"{A}.weight": (2, 128), f"{B}.weight": (128, 2), f"{A}.x.weight": (2, 128),
    },
    "is a module that the file has under another name": {
        f"{A}.weight": (2, 128), f"{B}.weight": (128, 2),
        f"{A.replace('.0.', '.00.')}.weight": (2, 128),
        f"{B.replace('.0.', '.00.')}.weight": (128, 2),
    },
    "A is \\(rank, 128\\) and B \\(128, rank\\), got \\(2, 64\\)": {
        f"{A}.weight": (2, 64), f"{B}.weight": (128, 2),
    },
    "got \\(2, 128\\) and \\(128, 4\\)": {f"{A}.weight": (2, 128), f"{B}.weight": (128, 4)},
    "is a matrix of": {f"{A}.weight": (2, 128, 1), f"{B}.weight": (128, 2)},
    "lora_magnitude_vector is no lora_A": {f"{A[:-7]}.lora_magnitude_vector": (128,)},
    "model has no such module": {f"{EXPERT}A.weight": (2, 128), f"{EXPERT}B.weight": (256, 2)},
    "embedding is none": {f"{EMBEDDING}A.weight": (2, 128), f"{EMBEDDING}B.weight": (256, 2)},
    "has rank 41, and the model takes 40": {f"{A}.weight": (41, 128), f"{B}.weight": (128, 41)},
}  # fmt: skip


@pytest.mark.parametrize("message", TENSORS)
def test_wrong_tensors_are_named(message, model, tmp_path):
    shapes = TENSORS[message]
    ranks = [shape[0] for name, shape in shapes.items() if "lora_A" in name]
    q_proj(tmp_path / "a", r=ranks[0] if ranks else 2, target_modules="all-linear")
    if not shapes:
        (tmp_path / "a" / "adapter_config.json").write_text(
            json.dumps({"r": 2, "lora_alpha": 2, "target_modules": []})
        )
    arrays = {name: kw.ones(shape) for name, shape in shapes.items()}
    kw.save_safetensors(tmp_path / "a" / "adapter_model.safetensors", arrays)
    with pytest.raises(llm.ModelError, match=message):
        model.load_adapter(tmp_path / "a")
    assert model.adapters == {}


def test_experts_take_no_adapters(tmp_path):
    model = llm.load(random=fields_of("qwen3_moe", dtype="float32"))
    width = model.module.layers[0].mlp.gate_up.shape[1] // 2
    adapter_written(tmp_path / "a", {"model.layers.0.mlp.experts.0.up_proj": (width, 128)})
    with pytest.raises(llm.ModelError, match="experts are none"):
        model.load_adapter(tmp_path / "a")


def test_missing_and_damaged_files(model, tmp_path):
    with pytest.raises(llm.ModelError, match=r"no adapter_config\.json"):
        model.load_adapter(tmp_path)
    q_proj(tmp_path / "a")
    file = tmp_path / "a" / "adapter_model.safetensors"
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(kw.errors.StoreError, match=r"adapter_model\.safetensors"):
        model.load_adapter(tmp_path / "a")
    file.unlink()
    with pytest.raises(llm.ModelError, match=r"no adapter_model\.safetensors"):
        model.load_adapter(tmp_path / "a")
    (tmp_path / "a" / "adapter_config.json").write_text("{")
    file.write_bytes(b"")
    with pytest.raises(llm.ModelError, match="is no JSON"):
        model.load_adapter(tmp_path / "a")
    with pytest.raises(ArgumentError, match="a path is"):
        model.load_adapter(3)


def test_names_and_slots_are_bounded(model, tmp_path):
    for name in "abcd":
        q_proj(tmp_path / name, seed=ord(name))
    for name in "abc":
        model.load_adapter(tmp_path / name)
    with pytest.raises(llm.ModelError, match="all 3 slots of adapters are in use: unload one"):
        model.load_adapter(tmp_path / "d")
    with pytest.raises(llm.ModelError, match="'a' is loaded already"):
        model.load_adapter(tmp_path / "d", "a")
    with pytest.raises(ArgumentError, match="name of an adapter"):
        model.load_adapter(tmp_path / "d", "")
    model.unload_adapter("b")
    model.load_adapter(tmp_path / "d")
    assert list(model.adapters) == ["a", "c", "d"]
    with pytest.raises(llm.ModelError, match="no adapter 'b'; there are a, c, d"):
        model.unload_adapter("b")
    for call in (model.generate, model.logits, model.embed, model.perplexity):
        with pytest.raises(llm.ModelError, match="no adapter 'b'"):
            call([1, 2], adapter="b")
    with pytest.raises(ArgumentError, match="adapter is the name of one"):
        model.generate([1, 2], adapter=3)


@pytest.mark.parametrize("name", ["max_adapters", "max_adapter_rank"])
def test_limits_without_sense_are_refused(name, llama):
    with pytest.raises(InvalidArgument, match=f"{name} is from 1 to 4096, got 0"):
        llm.load(llama[0], **{name: 0})
    with pytest.raises(ArgumentError, match=f"{name} is an int"):
        llm.load(llama[0], **{name: "8"})
