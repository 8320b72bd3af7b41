"""The stored Llamas of tests/data, and what they compute in float64 with NumPy."""

import json
import pathlib

import ml_dtypes
import numpy as np

import kernwright as kw

DATA = pathlib.Path(__file__).resolve().parents[1] / "data"
MODELS = ("tiny_llama", "tiny_llama_draft")


def config_of(name):
    return json.loads((DATA / name / "config.json").read_text())


def weights_of(name):
    """The weights of a stored model by their names, in float64."""
    arrays = kw.load_safetensors(DATA / name / "model.safetensors", device="sim")
    return {each: host_array(x) for each, x in arrays.items()}


def host_array(x):
    assert x.dtype in (ml_dtypes.bfloat16, np.float32)
    return x.numpy().astype(np.float64)


def logits_on_the_host(weights, config, tokens, states=None):
    """Logits (batch, length, vocabulary) of tokens (batch, length). `states` gets the hidden states
    in front of each layer and behind the last one."""
    size, eps = config["head_dim"], config["rms_norm_eps"]
    group = config["num_attention_heads"] // config["num_key_value_heads"]
    batch, length = tokens.shape
    angles = np.arange(length)[:, None] * config["rope_theta"] ** (-np.arange(0, size, 2) / size)

    def norm(x, name):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * weights[f"{name}.weight"]

    def layer(x, name):
        return x @ weights[f"{name}.weight"].T

    def heads(x, name):
        return layer(x, name).reshape(batch, length, -1, size).swapaxes(1, 2)

    def turned(x):
        a, b = np.split(x, 2, -1)
        cos, sin = np.cos(angles), np.sin(angles)
        return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)

    x = weights["model.embed_tokens.weight"][tokens]
    for i in range(config["num_hidden_layers"]):
        name = f"model.layers.{i}"
        if states is not None:
            states.append(x)
        y = norm(x, f"{name}.input_layernorm")
        q, k, v = (heads(y, f"{name}.self_attn.{each}_proj") for each in "qkv")
        k, v = np.repeat(turned(k), group, 1), np.repeat(v, group, 1)
        scores = turned(q) @ k.swapaxes(-1, -2) / np.sqrt(size)
        scores[..., ~np.tri(length, dtype=bool)] = -np.inf
        y = softmax(scores) @ v
        x = x + layer(y.swapaxes(1, 2).reshape(batch, length, -1), f"{name}.self_attn.o_proj")
        y = norm(x, f"{name}.post_attention_layernorm")
        gate = layer(y, f"{name}.mlp.gate_proj")
        y = gate / (1 + np.exp(-gate)) * layer(y, f"{name}.mlp.up_proj")
        x = x + layer(y, f"{name}.mlp.down_proj")
    if states is not None:
        states.append(x)
    return norm(x, "model.norm") @ weights["model.embed_tokens.weight"].T


def softmax(x):
    x = np.exp(x - x.max(-1, keepdims=True))
    return x / x.sum(-1, keepdims=True)


def mean_loss(logits, targets):
    """The mean cross-entropy in nats."""
    chances = np.take_along_axis(softmax(logits), np.asarray(targets)[..., None], -1)
    return -np.log(chances).mean()
