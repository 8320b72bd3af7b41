"""examples/gpt: the model beside NumPy and transformers, files of Hugging Face, training, text."""

import dataclasses
import importlib
import json
import pathlib
import sys

import numpy as np
import pytest

import kernwright as kw

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "examples" / "gpt"
NAMES = ("data", "model", "train", "sample")


@pytest.fixture(scope="module")
def example():
    """The modules of the example by name."""
    sys.path.insert(0, str(FOLDER))
    try:
        yield {name: importlib.import_module(name) for name in NAMES}
    finally:
        sys.path.remove(str(FOLDER))
        for name in NAMES:
            sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def net(example):
    """A small GPT-2 whose weights are larger than those that training begins with."""
    gpt = example["model"]
    config = gpt.Config(vocab_size=50, n_positions=16, n_embd=32, n_layer=2, n_head=4)
    made = gpt.GPT(config, seed=3)
    for i, (_, weight) in enumerate(made.named_parameters()):
        weight += kw.random.normal(weight.shape, seed=i) * 0.2
    return made


TOKENS = np.random.default_rng(0).integers(0, 50, (2, 9)).astype(np.int32)


def logits_on_the_host(weights, tokens, config):
    """GPT-2 in float64."""

    def norm(x, name):
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(-1, keepdims=True) + config.layer_norm_epsilon)
        return x * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    def layer(x, name):
        return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    batch, length = tokens.shape
    x = weights["wte.weight"][tokens] + weights["wpe.weight"][:length]
    for i in range(config.n_layer):
        qkv = layer(norm(x, f"h.{i}.ln_1"), f"h.{i}.attn.c_attn")
        q, k, v = qkv.reshape(batch, length, 3, config.n_head, -1).transpose(2, 0, 3, 1, 4)
        scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
        scores[..., ~np.tri(length, dtype=bool)] = -np.inf
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        x = x + layer((shares @ v).swapaxes(1, 2).reshape(x.shape), f"h.{i}.attn.c_proj")
        up = layer(norm(x, f"h.{i}.ln_2"), f"h.{i}.mlp.c_fc")
        up = 0.5 * up * (1 + np.tanh(np.sqrt(2 / np.pi) * (up + 0.044715 * up**3)))
        x = x + layer(up, f"h.{i}.mlp.c_proj")
    return norm(x, "ln_f") @ weights["wte.weight"].T


def host_weights(net):
    return {name: weight.numpy().astype(np.float64) for name, weight in net.named_parameters()}


def test_logits_and_gradients_are_those_of_float64(example, net):
    expected = logits_on_the_host(host_weights(net), TOKENS, net.config)
    tokens = kw.asarray(TOKENS)
    assert np.allclose(net(tokens).numpy(), expected, rtol=1e-4, atol=1e-4)

    def loss(weights):
        logits = logits_on_the_host(weights, TOKENS[:, :-1], net.config)
        logits = logits - logits.max(-1, keepdims=True)
        chances = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        return -np.take_along_axis(chances, TOKENS[:, 1:, None], -1).mean()

    gradient = kw.value_and_grad(example["model"].loss_of)
    value, found = gradient(net, tokens[:, :-1], tokens[:, 1:])
    assert abs(value.item() - loss(host_weights(net))) < 1e-4
    places = {
        "wte.weight": (int(TOKENS[0, 3]), 5), "wpe.weight": (4, 1), "h.0.ln_1.weight": (7,),
        "h.0.attn.c_attn.weight": (70, 3), "h.1.attn.c_attn.bias": (5,),
        "h.1.mlp.c_fc.weight": (100, 30), "h.0.mlp.c_proj.weight": (2, 90), "ln_f.bias": (0,),
    }  # fmt: skip
    for name, place in places.items():
        sides = []
        for step in (1e-5, -1e-5):
            weights = host_weights(net)
            weights[name][place] += step
            sides.append(loss(weights))
        got = found
        for part in name.split("."):
            got = got[part]
        assert abs(got[place].item() - (sides[0] - sides[1]) / 2e-5) < 1e-4, name


def test_checkpoints_have_the_names_and_layouts_of_hugging_face(example, net, tmp_path):
    gpt = example["model"]
    gpt.save(net, tmp_path / "plain")
    arrays = kw.load_safetensors(tmp_path / "plain" / "model.safetensors")
    assert arrays["h.0.attn.c_attn.weight"].shape == (32, 96)
    assert arrays["h.1.mlp.c_proj.weight"].shape == (128, 32)
    settings = json.loads((tmp_path / "plain" / "config.json").read_text())
    assert settings["model_type"] == "gpt2" and settings["n_head"] == 4

    # Older versions of GPT2LMHeadModel.save_pretrained() wrote a prefix, masks and the tied layer.
    other = tmp_path / "prefixed"
    other.mkdir()
    named = {f"transformer.{name}": array for name, array in arrays.items()}
    named["transformer.h.0.attn.bias"] = kw.ones((1, 1, 16, 16))
    named["transformer.h.0.attn.masked_bias"] = kw.full((), -1e4)
    named["lm_head.weight"] = arrays["wte.weight"].copy()
    kw.save_safetensors(other / "model.safetensors", named)
    (other / "config.json").write_text(json.dumps({**settings, "resid_pdrop": 0.1}))
    for folder in ("plain", "prefixed"):
        back = gpt.load(tmp_path / folder)
        assert back.config == net.config
        for (name, a), (_, b) in zip(net.named_parameters(), back.named_parameters(), strict=True):
            assert a.numpy().tobytes() == b.numpy().tobytes(), name


def test_transformers_computes_the_same_logits(example, net, tmp_path):
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    example["model"].save(net, tmp_path)
    theirs = transformers.GPT2LMHeadModel.from_pretrained(tmp_path).eval()
    with torch.no_grad():
        expected = theirs(torch.asarray(TOKENS.astype(np.int64))).logits.numpy()
    assert np.allclose(net(kw.asarray(TOKENS)).numpy(), expected, rtol=1e-3, atol=1e-3)


def words(folder, *more):
    return ["--out", str(folder), "--limit", "30000", "--every", "4", "--steps", "12", *more]


def losses(folder):
    rows = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return {row["step"]: row["loss"] for row in rows if "step" in row}


def test_a_resumed_run_has_the_bits_of_one_without_a_break(example, tmp_path):
    train = example["train"]
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    more = ("--accumulate", "2", "--batch", "4")
    train.train(train.options_of(words(whole, *more)))
    train.train(train.options_of(words(broken, *more, "--until", "6")))
    train.train(train.options_of(words(broken, *more)))
    files = [folder / "model" / "model.safetensors" for folder in (whole, broken)]
    assert files[0].read_bytes() == files[1].read_bytes()
    assert losses(whole)[10] == losses(broken)[10] < 5.0  # it begins with log(256) = 5.5
    with pytest.raises(ValueError, match="has the data of"):
        train.train(train.options_of(words(whole, "--tokenizer", "char")))

    tokenizer = example["data"].tokenizer_of(whole)
    model = example["model"].load(whole / "model")
    texts = [
        example["sample"].generate(model, tokenizer.encode("import o"), 40, 256, top_k=5, seed=seed)
        for seed in (1, 1, 2)
    ]
    assert texts[0] == texts[1] != texts[2] and len(texts[0]) == 48
    assert tokenizer.decode(texts[0]).startswith("import o")


def test_a_checkpoint_is_tuned_further(example, net, tmp_path):
    gpt, train = example["model"], example["train"]
    config = gpt.Config(vocab_size=256, n_positions=16, n_embd=32, n_layer=1, n_head=2)
    gpt.save(gpt.GPT(config, seed=5), tmp_path / "given")
    gpt.save(net, tmp_path / "narrow")
    more = ["--init", str(tmp_path / "given"), "--tokenizer", "byte", "--dtype", "bfloat16"]
    train.train(train.options_of(words(tmp_path / "tuned", *more)))
    tuned = gpt.load(tmp_path / "tuned" / "model")
    assert tuned.config == config and losses(tmp_path / "tuned")[10] < 5.4
    more[1] = str(tmp_path / "narrow")  # of 50 tokens
    with pytest.raises(kw.StoreError, match="the vocabulary 50 tokens"):
        train.train(train.options_of(words(tmp_path / "other", *more)))


def test_generation_reads_the_last_tokens_alone(example, net):
    """The most probable tokens are those of calls without padding, also beyond n_positions."""
    tokens = [int(token) for token in TOKENS[0]]
    expected = list(tokens)
    for _ in range(12):
        seen = np.asarray([expected[-net.config.n_positions :]], np.int32)
        logits = logits_on_the_host(host_weights(net), seen, net.config)[0, -1, :40]
        expected.append(int(logits.argmax()))
    assert example["sample"].generate(net, tokens, 12, 40, temperature=0.0) == expected


def test_texts_as_characters(example, tmp_path):
    data = example["data"]
    (tmp_path / "text.txt").write_text("to be or not to be, \u00fc" * 60, encoding="utf-8")
    folder = tmp_path / "run"
    tokenizer = data.prepare(tmp_path / "text.txt", "char", folder, 10**6)
    assert tokenizer.vocab_size == 9
    assert tokenizer.decode(tokenizer.encode("not \u00fc")) == "not \u00fc"
    inputs, targets = next(kw.train.Shards(folder / "train.bin", 2, 5))
    text = tokenizer.decode(np.append(inputs[0].numpy(), targets[0, -1].item()))
    assert text == "to be "
    with pytest.raises(ValueError, match="too few"):
        data.prepare(tmp_path / "text.txt", "byte", tmp_path / "other", 20)
    with pytest.raises(ValueError, match="bpe:N"):
        data.prepare(tmp_path / "text.txt", "words", tmp_path / "other", 10**6)


def test_the_large_preset_has_the_size_of_gpt2(example):
    gpt, train = example["model"], example["train"]
    config = dataclasses.replace(gpt.PRESETS["gpt2"], vocab_size=50304)
    assert round(gpt.flops_per_token(config) / 1e6) == 807
    assert train.options_of(["--preset", "gpt2", "--batch", "32"]).batch == 32
