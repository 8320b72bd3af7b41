"""GPT-2 (Radford et al. 2019), with the names of its checkpoints on Hugging Face."""

import dataclasses
import json
import pathlib

import kernwright as kw


@dataclasses.dataclass(frozen=True)
class Config:
    """The sizes of a model, by the names in config.json of Hugging Face."""

    vocab_size: int = 256
    n_positions: int = 64
    n_embd: int = 64
    n_layer: int = 2
    n_head: int = 4
    layer_norm_epsilon: float = 1e-5


PRESETS = {
    "tiny": Config(n_positions=32, n_embd=32, n_layer=1, n_head=2),
    "char": Config(n_positions=256, n_embd=384, n_layer=6, n_head=6),
    "gpt2": Config(vocab_size=50304, n_positions=1024, n_embd=768, n_layer=12, n_head=12),
}


class Attention(kw.nn.Module):
    def __init__(self, config):
        self.n_head = config.n_head
        self.c_attn = kw.nn.Linear(config.n_embd, 3 * config.n_embd)
        self.c_proj = kw.nn.Linear(config.n_embd, config.n_embd)

    def __call__(self, x, residual):
        q, k, v = kw.nn.split_qkv(self.c_attn(x), self.n_head, heads_first=True)
        y = kw.nn.attention(q, k, v, is_causal=True)
        return self.c_proj(merged(y), residual=residual)


def merged(y):
    """(batch, heads, tokens, size) as (batch, tokens, heads * size)."""
    batch, heads, tokens, size = y.shape
    return kw.permute_dims(y, (0, 2, 1, 3)).reshape(batch, tokens, heads * size)


class MLP(kw.nn.Module):
    def __init__(self, config):
        self.c_fc = kw.nn.Linear(config.n_embd, 4 * config.n_embd)
        self.c_proj = kw.nn.Linear(4 * config.n_embd, config.n_embd)

    def __call__(self, x, residual):
        return self.c_proj(self.c_fc(x, activation="gelu_tanh"), residual=residual)


class Block(kw.nn.Module):
    def __init__(self, config):
        self.ln_1 = kw.nn.LayerNorm(config.n_embd, config.layer_norm_epsilon)
        self.attn = Attention(config)
        self.ln_2 = kw.nn.LayerNorm(config.n_embd, config.layer_norm_epsilon)
        self.mlp = MLP(config)

    def __call__(self, x):
        x = self.attn(self.ln_1(x), residual=x)
        return self.mlp(self.ln_2(x), residual=x)


class GPT(kw.nn.Module):
    """Logits of the next token; the token embedding is the last layer, too."""

    def __init__(self, config, seed=0):
        self.config = config
        self.wte = kw.nn.Embedding(config.vocab_size, config.n_embd)
        self.wpe = kw.nn.Embedding(config.n_positions, config.n_embd)
        self.h = [Block(config) for _ in range(config.n_layer)]
        self.ln_f = kw.nn.LayerNorm(config.n_embd, config.layer_norm_epsilon)
        for i, (name, weight) in enumerate(self.named_parameters()):
            if name.endswith("bias"):
                weight.fill(0)
            elif "ln_" not in name:
                std = 0.02 / (2 * config.n_layer) ** 0.5 if "c_proj" in name else 0.02
                weight[...] = kw.nn.init.normal(weight.shape, std=std, seed=1000 * seed + i)

    def features(self, tokens):
        """The last layer's input, (batch, length, n_embd), of tokens (batch, length)."""
        x = self.wte(tokens) + self.wpe.weight[: tokens.shape[1]]
        for block in self.h:
            x = block(x)
        return self.ln_f(x)

    def __call__(self, tokens):
        return self.wte.as_linear(self.features(tokens))


def loss_of(model, inputs, targets):
    """The mean cross-entropy of targets (batch, length) in nats."""
    return kw.nn.linear_cross_entropy(model.features(inputs), model.wte.weight, targets)


def flops_per_token(config):
    """Of products and causal attention, forward and backward."""
    dense = config.n_embd * (12 * config.n_layer * config.n_embd + config.vocab_size)
    return 6 * dense + 7 * config.n_layer * config.n_embd * config.n_positions


# Hugging Face stores the weights of GPT-2's layers as (inputs, outputs), torch's and ours are
# (outputs, inputs).
TRANSPOSED = ("c_attn.weight", "c_proj.weight", "c_fc.weight")


def swapped(arrays):
    return {name: x.mT.copy() if name.endswith(TRANSPOSED) else x for name, x in arrays.items()}


def save(model, folder):
    """Writes model.safetensors and config.json as transformers' GPT2LMHeadModel reads them."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    arrays = swapped(dict(model.named_parameters()))
    kw.save_safetensors(folder / "model.safetensors", arrays, metadata={"format": "pt"})
    settings = {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2"}
    settings |= {"activation_function": "gelu_new"} | dataclasses.asdict(model.config)
    (folder / "config.json").write_text(json.dumps(settings, indent=1) + "\n")


def load(folder):
    """The model of a folder with model.safetensors and config.json of GPT-2."""
    folder = pathlib.Path(folder)
    settings = json.loads((folder / "config.json").read_text())
    names = [field.name for field in dataclasses.fields(Config)]
    model = GPT(Config(**{name: settings[name] for name in names if name in settings}))
    found = {}
    for name, array in kw.load_safetensors(folder / "model.safetensors").items():
        name = name.removeprefix("transformer.")
        if name != "lm_head.weight" and not name.endswith((".attn.bias", ".attn.masked_bias")):
            found[name] = array
    model.load(swapped(found))
    return model
