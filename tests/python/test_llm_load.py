"""llm.load(): files that are right, and those that are not."""

import json

import numpy as np
import pytest

import kernwright as kw
from kernwright import llm
from kernwright.errors import ArgumentError, StoreError

FIELDS = {
    "architectures": ["LlamaForCausalLM"], "vocab_size": 48, "hidden_size": 32,
    "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 32, "dtype": "float32",
}  # fmt: skip


def tensors():
    """Arrays under the names of Hugging Face's files."""
    draws = np.random.default_rng(5)
    shapes = {"model.embed_tokens.weight": (48, 32), "model.norm.weight": (32,)}
    for i in range(2):
        block = f"model.layers.{i}."
        shapes |= {
            block + "input_layernorm.weight": (32,),
            block + "post_attention_layernorm.weight": (32,),
            block + "self_attn.q_proj.weight": (32, 32),
            block + "self_attn.k_proj.weight": (16, 32),
            block + "self_attn.v_proj.weight": (16, 32),
            block + "self_attn.o_proj.weight": (32, 32),
            block + "mlp.gate_proj.weight": (64, 32),
            block + "mlp.up_proj.weight": (64, 32),
            block + "mlp.down_proj.weight": (32, 64),
        }
    shapes["lm_head.weight"] = (48, 32)
    return {
        name: kw.asarray(draws.standard_normal(shape).astype(np.float32) * 0.2)
        for name, shape in shapes.items()
    }


def written(folder, arrays, fields=FIELDS):
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(fields))
    kw.save_safetensors(folder / "model.safetensors", arrays)
    return folder


def test_each_tensor_comes_to_its_place(tmp_path):
    arrays = tensors()
    model = llm.load(written(tmp_path, arrays))
    layer = model.parameters["layers"]["1"]
    parts = [arrays[f"model.layers.1.self_attn.{each}_proj.weight"].numpy() for each in "qkv"]
    np.testing.assert_array_equal(
        layer["attention"]["qkv"]["weight"].numpy(), np.concatenate(parts)
    )
    parts = [arrays[f"model.layers.1.mlp.{each}_proj.weight"].numpy() for each in ("gate", "up")]
    np.testing.assert_array_equal(layer["mlp"]["gate_up"]["weight"].numpy(), np.concatenate(parts))


def test_parts_and_their_index_are_one_file(tmp_path):
    arrays = tensors()
    whole = llm.load(written(tmp_path / "whole", arrays)).logits([1, 2, 3])
    folder = tmp_path / "parts"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(FIELDS))
    names = list(arrays)
    weight_map = {}
    for i, some in enumerate((names[:7], names[7:])):
        part = f"model-{i + 1}-of-2.safetensors"
        kw.save_safetensors(folder / part, {name: arrays[name] for name in some})
        weight_map |= dict.fromkeys(some, part)
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": weight_map}))
    np.testing.assert_array_equal(llm.load(folder).logits([1, 2, 3]).numpy(), whole.numpy())
    (folder / "model-2-of-2.safetensors").unlink()
    with pytest.raises(llm.ModelError, match=r"files that are missing: model-2-of-2\.safetensors"):
        llm.load(folder)


def test_tied_weights_are_one_parameter(tmp_path):
    arrays = tensors()
    arrays.pop("lm_head.weight")
    fields = FIELDS | {"tie_word_embeddings": True}
    model = llm.load(written(tmp_path, arrays, fields))
    assert model.module.head.weight is model.module.embedding.weight
    # a second copy in the file is left alone, as in transformers
    arrays["lm_head.weight"] = kw.zeros((48, 32))
    again = llm.load(written(tmp_path, arrays, fields))
    np.testing.assert_array_equal(again.logits([5]).numpy(), model.logits([5]).numpy())


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_weights_have_the_dtype_that_was_asked_for(tmp_path, dtype):
    model = llm.load(written(tmp_path, tensors()), dtype=dtype)
    assert {a.dtype.name for _, a in model.module.named_parameters()} == {dtype}
    assert model.logits([1, 2]).dtype.name == "float32"


def test_all_that_does_not_fit_is_listed(tmp_path):
    arrays = tensors()
    arrays["model.layers.0.extra.weight"] = kw.zeros(3)
    arrays["model.norm.weight"] = kw.zeros(31)
    arrays.pop("model.layers.0.mlp.down_proj.weight")
    arrays.pop("model.layers.1.self_attn.k_proj.weight")
    with pytest.raises(llm.ModelError) as found:
        llm.load(written(tmp_path, arrays))
    for text in (
        "model.safetensors does not fit Llama",
        "missing: model.layers.0.mlp.down_proj.weight (for layers.0.mlp.down.weight), "
        "model.layers.1.self_attn.k_proj.weight (for layers.1.attention.qkv.weight); ",
        "unexpected: model.layers.0.extra.weight",
        "model.norm.weight is (31,), and norm.weight takes (32,)",
    ):
        assert text in str(found.value)


def test_buffers_of_old_files_are_left_alone(tmp_path):
    arrays = tensors()
    arrays["model.layers.0.self_attn.rotary_emb.inv_freq"] = kw.zeros(4)
    llm.load(written(tmp_path, arrays))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"architectures": ["NoneSuch"]},
            "'NoneSuch' is unknown; known are DeepseekV2ForCausalLM, GPT2LMHeadModel, ",
        ),
        ({"architectures": []}, "architectures has one name"),
        ({"architectures": None}, "architectures has one name"),
        ({"vocab_size": None}, "the field vocab_size is missing"),
        ({"vocab_size": "many"}, "vocab_size is a whole number of at least 1, got 'many'"),
        ({"hidden_size": True}, "hidden_size is a whole number"),
        ({"num_hidden_layers": 0}, "num_hidden_layers is a whole number of at least 1, got 0"),
        ({"num_attention_heads": 5}, "hidden_size 32 is no multiple of 5 heads"),
        ({"num_key_value_heads": 3}, "4 heads cannot share 3 key-value heads"),
        ({"hidden_act": "tanhh"}, "hidden_act 'tanhh' is unknown; known are silu"),
        ({"rms_norm_eps": "small"}, "rms_norm_eps is a number"),
        ({"rope_scaling": {"rope_type": "spiral"}}, "spiral"),
        ({"rope_scaling": 3}, "rope_parameters has fields"),
        ({"layer_types": ["full_attention"]}, "layer_types has a kind for each of 2"),
        ({"layer_types": ["full_attention", "linear"]}, "layer_types has 'linear'"),
        ({"tie_word_embeddings": "yes"}, "tie_word_embeddings is true or false"),
        ({"eos_token_id": [1, "x"]}, "eos_token_id is the number of a token or a list"),
        ({"dtype": "float8"}, "dtype 'float8' is none of"),
        ({"partial_rotary_factor": 0.4}, "makes no even part of 8"),
    ],
)
def test_configs_that_make_no_sense_are_named(tmp_path, changes, message):
    fields = {k: v for k, v in (FIELDS | changes).items() if v is not None}
    with pytest.raises(
        (llm.ModelError, kw.errors.Error), match="(?s)" + message.replace("(", r"\(")
    ):
        llm.load(written(tmp_path, tensors(), fields)).logits([1])


def test_ends_that_no_token_has_are_left_out_with_a_warning(tmp_path):
    folder = written(tmp_path, tensors(), FIELDS | {"eos_token_id": [3, 48], "bos_token_id": 500})
    with pytest.warns(RuntimeWarning) as caught:
        config = llm.load(folder).config
    assert (config.eos, config.bos) == ((3,), None)
    assert [str(each.message).partition(": ")[2] for each in caught] == [
        f"{name} has {ids}, which no token has: ids are below 48, and the rest of {name} counts"
        for name, ids in (("bos_token_id", [500]), ("eos_token_id", [48]))
    ]
    (folder / "config.json").write_text(json.dumps(FIELDS))
    path = folder / "generation_config.json"
    path.write_text('{"eos_token_id": [5, 99]}')
    with pytest.warns(RuntimeWarning, match=r"generation_config.json: eos_token_id has \[99\]"):
        assert llm.load(folder).eos == (*llm.Config.from_fields(FIELDS).eos, 5)
    path.write_text('{"eos_token_id": -1}')
    with pytest.raises(
        llm.ModelError, match=r"generation_config\.json: eos_token_id is the number"
    ):
        llm.load(folder)


def test_folders_without_a_model(tmp_path):
    with pytest.raises(llm.ModelError, match="does not exist"):
        llm.load(tmp_path / "none")
    with pytest.raises(llm.ModelError, match=r"has no config\.json; it has no file"):
        llm.load(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(FIELDS))
    with pytest.raises(llm.ModelError, match="a config without weights"):
        llm.load(tmp_path)
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(llm.ModelError, match=r"pytorch_model\.bin are not read, save them as safe"):
        llm.load(tmp_path)
    (tmp_path / "model-00001-of-00002.safetensors").write_bytes(b"")
    with pytest.raises(llm.ModelError, match=r"model-00001-of-00002.* only the index tells"):
        llm.load(tmp_path)
    with pytest.raises(llm.ModelError, match="is no folder"):
        llm.load(tmp_path / "config.json")
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(llm.ModelError, match="is no JSON"):
        llm.load(tmp_path)
    (tmp_path / "config.json").write_text("[]")
    with pytest.raises(llm.ModelError, match="holds a list"):
        llm.load(tmp_path)


def test_damaged_weights(tmp_path):
    folder = written(tmp_path, tensors())
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:5000])
    with pytest.raises(StoreError) as caught:
        llm.load(folder)
    assert isinstance(caught.value, llm.ModelError) and str(file) in str(caught.value)


def test_arguments_of_load(tmp_path):
    with pytest.raises(ArgumentError, match="a path or random=config"):
        llm.load()
    with pytest.raises(ArgumentError, match="a path is a str"):
        llm.load(3)
    with pytest.raises(ArgumentError, match="dtype is one of"):
        llm.load(random=FIELDS, dtype="int8")
    with pytest.raises(ArgumentError, match="max_length is a number of tokens"):
        llm.load(random=FIELDS, max_length=0)
    with pytest.raises(ArgumentError, match="random is a config"):
        llm.load(random=3)


def test_random_models_are_the_same_each_time_and_bounded(tmp_path):
    model, again = llm.load(random=FIELDS), llm.load(random=llm.Config.from_fields(FIELDS))
    np.testing.assert_array_equal(model.logits([1, 2]).numpy(), again.logits([1, 2]).numpy())
    short = llm.load(random=FIELDS, max_length=4)
    with pytest.raises(llm.ContextError, match="the prompt has 5 tokens, and the context holds 4"):
        short.logits([1, 2, 3, 4, 5])


@pytest.mark.parametrize(
    ("tokens", "error", "message"),
    [
        ([], llm.ModelError, "one token at least"),
        ([48], llm.ModelError, "token 48 is outside of the vocabulary of 48"),
        ([-1], llm.ModelError, "token -1 is outside"),
        ([1.5], ArgumentError, "whole numbers"),
        ("text", ArgumentError, "whole numbers"),
        (7, ArgumentError, "whole numbers"),
        ([True], ArgumentError, "whole numbers"),
        ([1, 2, 48, -1], llm.ModelError, "token 48 is outside"),
        ([1, 2**70], llm.ModelError, f"token {2**70} is outside"),
        ((1, -(2**31)), llm.ModelError, "token -2147483648 is outside"),
        ([1, False], ArgumentError, "whole numbers"),
        ([1, 2.0], ArgumentError, "whole numbers"),
    ],
)
def test_tokens_are_checked(tokens, error, message):
    with pytest.raises(error, match=message):
        llm.load(random=FIELDS).logits(tokens)


def test_checked_tokens_are_a_list_of_ints():
    class Whole(int):
        pass

    model = llm.load(random=FIELDS)
    given = [1, 0, 47]
    for tokens in (given, tuple(given), np.array(given, np.int8), [Whole(1), np.int64(0), 47]):
        found = model.checked_tokens(tokens)
        assert found == given and set(map(type, found)) == {int}
        assert found is not given


def test_perplexity_is_that_of_the_logits():
    model = llm.load(random=FIELDS | {"initializer_range": 1})
    tokens = list(np.random.default_rng(1).integers(0, 48, 20))
    logits = model.logits(tokens).numpy().astype(np.float64)
    logs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    expected = np.exp(-np.mean([logs[i, tokens[i + 1]] for i in range(19)]))
    assert model.perplexity(tokens) == pytest.approx(expected, rel=1e-5)
    with pytest.raises(llm.ModelError, match="two tokens at least"):
        model.perplexity([1])


def test_a_model_of_ones_own(tmp_path):
    class Own(llm.models.Llama):
        def __call__(self, step):
            return 2 * super().__call__(step)

    llm.register("OwnForCausalLM", Own)
    arrays = tensors()
    plain = llm.load(written(tmp_path, arrays))
    own = llm.load(written(tmp_path, arrays, FIELDS | {"architectures": ["OwnForCausalLM"]}))
    np.testing.assert_allclose(own.logits([3]).numpy(), 2 * plain.logits([3]).numpy(), rtol=1e-6)
    with pytest.raises(ArgumentError, match="a model is a class"):
        llm.register("OwnForCausalLM", print)
    with pytest.raises(ArgumentError, match="an architecture is a name"):
        llm.register("", Own)


def test_layers_of_ones_own_need_no_norm():
    class Mlp(llm.models.GatedMLP):
        def __call__(self, x, residual=None):
            return super().__call__(x, residual=residual)

    class Own(llm.models.Llama):
        def __init__(self, config):
            super().__init__(config)
            for layer in self.layers:
                layer.mlp = Mlp(config)

    llm.register("OwnMlpForCausalLM", Own)
    fields = FIELDS | {"architectures": ["OwnMlpForCausalLM"]}
    made = [llm.load(random=each).generate([1, 2, 3], max_tokens=4) for each in (FIELDS, fields)]
    assert made[0].tokens == made[1].tokens
