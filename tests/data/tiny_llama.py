"""Trains the models beside this file: `python tests/data/tiny_llama.py` on a GPU, in two minutes.

Both are Llamas that write Python; README.md tells how much of them comes out again.
"""

import argparse
import dataclasses
import hashlib
import json
import pathlib
import platform
import sys
import sysconfig

import kernwright as kw

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "examples" / "gpt"))
import data  # noqa: E402  (of examples/gpt)

BEGIN, END = "<|begin|>", "<|end|>"  # around each document
CHAT_TEMPLATE = """{{ bos_token }}{% for message in messages %}
{% if message['role'] not in ['system', 'user', 'assistant'] %}
{{ raise_exception('the roles are system, user and assistant, not ' + message['role']) }}
{% endif %}
# {{ message['role'] }}: {{ message['content'] | trim }}
{% if message['role'] == 'assistant' %}{{ eos_token }}{% endif %}
{% endfor %}{% if add_generation_prompt %}# assistant:{% endif %}"""
LEFT_OUT = data.LEFT_OUT | {"encodings", "pydoc_data", "lib2to3", "idlelib", "turtledemo"}
HELD_OUT = 20  # each twentieth file is not trained on


@dataclasses.dataclass(frozen=True)
class Config:
    """The sizes of a model, by the names in config.json of LlamaForCausalLM."""

    hidden_size: int = 128
    intermediate_size: int = 384
    num_hidden_layers: int = 4
    num_attention_heads: int = 4
    num_key_value_heads: int = 2
    head_dim: int = 32
    vocab_size: int = 1024
    max_position_embeddings: int = 512
    rms_norm_eps: float = 1e-5
    rope_theta: float = 10000.0


MODELS = {
    "tiny_llama": Config(),
    "tiny_llama_draft": Config(
        hidden_size=64, intermediate_size=320, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1,
    ),
}  # fmt: skip


class Block(kw.nn.Module):
    def __init__(self, config, rope):
        width, eps = config.hidden_size, config.rms_norm_eps
        self.input_layernorm = kw.nn.RMSNorm(width, eps)
        self.self_attn = kw.nn.MultiHeadAttention(
            width, config.num_attention_heads, config.num_key_value_heads, config.head_dim,
            rope=rope, is_causal=True,
        )  # fmt: skip
        self.post_attention_layernorm = kw.nn.RMSNorm(width, eps)
        self.mlp = kw.nn.GatedMLP(width, config.intermediate_size)

    def __call__(self, x):
        x = x + self.self_attn(self.input_layernorm(x))
        return x + self.mlp(self.post_attention_layernorm(x))


class Llama(kw.nn.Module):
    """The inner model of LlamaForCausalLM; the token embedding is the last layer, too."""

    def __init__(self, config, seed=0):
        self.config = config
        rope = kw.nn.Rope(
            config.head_dim, config.rope_theta, max_positions=config.max_position_embeddings
        )
        self.embed_tokens = kw.nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = [Block(config, rope) for _ in range(config.num_hidden_layers)]
        self.norm = kw.nn.RMSNorm(config.hidden_size, config.rms_norm_eps)
        for i, (name, weight) in enumerate(self.named_parameters()):
            if "norm" not in name:
                into_sum = name.endswith(("o_proj.weight", "down_proj.weight"))
                std = 0.02 / (2 * config.num_hidden_layers) ** 0.5 if into_sum else 0.02
                weight[...] = kw.nn.init.normal(weight.shape, std=std, seed=1000 * seed + i)

    def features(self, tokens):
        x = self.embed_tokens(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)

    def __call__(self, tokens):
        return self.embed_tokens.as_linear(self.features(tokens))


def loss_of(model, inputs, targets):
    """The mean cross-entropy of targets (batch, length) in nats."""
    features, weight = model.features(inputs), model.embed_tokens.weight
    return kw.nn.linear_cross_entropy(features, weight, targets)


def documents():
    """Top-level pieces of the standard library's sources: of training, and held out."""
    root = pathlib.Path(sysconfig.get_path("stdlib"))
    found = [path.relative_to(root).as_posix() for path in root.rglob("*.py")]
    names = sorted(name for name in found if not LEFT_OUT & set(name.split("/")))
    kept = ([], [])
    for i, name in enumerate(names):
        text = (root / name).read_text(encoding="utf-8", errors="replace")
        pieces = (piece.strip("\n") for piece in text.split("\n\n\n"))
        kept[i % HELD_OUT == HELD_OUT - 1].extend(piece + "\n" for piece in pieces if piece)
    return kept


def digest_of(training, held_out):
    return hashlib.sha256("\0".join([*training, *held_out]).encode()).hexdigest()


def prepare(folder):
    """Writes train.bin, val.bin and tokenizer.json into a folder, unless they are there."""
    if (folder / "data.json").exists():
        return
    from tokenizers import processors

    folder.mkdir(parents=True, exist_ok=True)
    parts = documents()
    size = Config.vocab_size
    bpe = data.train_bpe("".join(parts[0]), size - 2)
    bpe.add_special_tokens([BEGIN, END])
    bpe.post_processor = processors.TemplateProcessing(
        single=f"{BEGIN} $A", special_tokens=[(BEGIN, size - 2)]
    )
    text = json.dumps(json.loads(bpe.to_str()), separators=(",", ":"))  # plain ASCII
    (folder / "tokenizer.json").write_text(text + "\n")
    notes = {"python": platform.python_version(), "documents": digest_of(*parts)}
    for name, pieces in zip(("train", "val"), parts, strict=True):
        tokens = [token for made in bpe.encode_batch(pieces) for token in (*made.ids, size - 1)]
        kw.train.write_shard(folder / f"{name}.bin", tokens)
        notes[name] = {"tokens": len(tokens)}
        notes[name]["sha256"] = hashlib.sha256((folder / f"{name}.bin").read_bytes()).hexdigest()
    (folder / "data.json").write_text(json.dumps(notes, indent=1) + "\n")


def optimizer_of(model, steps):
    rates = [kw.optim.cosine(peak, steps, warmup=min(1000, steps // 10)) for peak in (0.02, 5e-3)]
    return kw.optim.Muon(
        model, lr=rates[0], weight_decay=0.1, master_weights=True, adamw={"lr": rates[1]},
        groups=[{"match": "embed", "rule": "adamw"}],
    )  # fmt: skip


def train(model, folder, steps, batch=64, every=1000):
    """Trains a model; returns the losses of a batch and of held-out text at each `every` steps."""
    length, known = model.config.max_position_embeddings, {"vocabulary": model.config.vocab_size}
    shards = kw.train.Shards(folder / "train.bin", batch, length, seed=1, **known)
    others = kw.train.Shards(folder / "val.bin", batch, length, **known)
    validation = [next(others) for _ in range(min(4, others.batches))]
    optimizer, gradient = optimizer_of(model, steps), kw.value_and_grad(loss_of)

    @kw.captured
    def train_step(inputs, targets):
        loss, gradients = gradient(model, inputs, targets)
        return loss, optimizer.step(gradients, max_norm=1.0)

    held_out = kw.captured(lambda inputs, targets: loss_of(model, inputs, targets))
    losses = []
    for step in range(1, steps + 1):
        loss, _ = train_step(*next(shards))
        if step % every == 0 or step == steps:
            mean = sum(held_out(*pair).item() for pair in validation) / len(validation)
            losses.append((step, loss.item(), mean))
            print(f"step {step}: loss {loss.item():.4f}, held out {mean:.4f}", flush=True)
    return losses


def save(model, folder, data_folder):
    """Writes a model in bfloat16 with its tokenizer as transformers reads them."""
    folder.mkdir(parents=True, exist_ok=True)
    arrays = {f"model.{name}": x.astype("bfloat16") for name, x in model.named_parameters()}
    kw.save_safetensors(folder / "model.safetensors", arrays, metadata={"format": "pt"})
    begin, end = model.config.vocab_size - 2, model.config.vocab_size - 1
    ends = {"bos_token_id": begin, "eos_token_id": end}
    settings = {"architectures": ["LlamaForCausalLM"], "model_type": "llama"}
    settings |= dataclasses.asdict(model.config) | ends
    settings |= {"hidden_act": "silu", "tie_word_embeddings": True, "attention_bias": False}
    settings |= {"mlp_bias": False, "dtype": "bfloat16"}
    tokenizer = {
        "tokenizer_class": "PreTrainedTokenizerFast", "bos_token": BEGIN, "eos_token": END,
        "clean_up_tokenization_spaces": False, "chat_template": CHAT_TEMPLATE,
        "model_max_length": model.config.max_position_embeddings,
    }  # fmt: skip
    for name, value in {
        "config": settings, "tokenizer_config": tokenizer,
        "generation_config": ends | {"do_sample": False},
    }.items():  # fmt: skip
        (folder / f"{name}.json").write_text(json.dumps(value, indent=1) + "\n")
    (folder / "tokenizer.json").write_bytes((data_folder / "tokenizer.json").read_bytes())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=HERE, help="where the models go")
    parser.add_argument("--data", type=pathlib.Path, default=pathlib.Path("tiny-llama-data"))
    parser.add_argument("--steps", type=int, default=12000)
    options = parser.parse_args()
    prepare(options.data)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "tiny_llama_data.json").write_bytes((options.data / "data.json").read_bytes())
    for name, config in MODELS.items():
        model = Llama(config).astype("bfloat16")
        train(model, options.data, options.steps)
        save(model, options.out / name, options.data)


if __name__ == "__main__":
    main()
