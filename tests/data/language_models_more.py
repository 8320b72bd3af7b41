"""More of transformers about the tiny models of language_models.py: long positions, and bfloat16.

    python language_models_more.py      # where torch and transformers are; writes ..._more.json

`kl` has the divergence of bfloat16 logits from those of float32, of each model: the median over the
positions of some prompts. A router that chooses another expert makes a few of them very large.
`long` has, of each scaling of rotary positions, logits of the last token of prompts of some
lengths, and the tokens of a text that grows past the length that the scaling begins with.
"""

import json
import pathlib
import sys
import tempfile

import language_models as tiny
import numpy as np

STORED = pathlib.Path(__file__).with_suffix(".json")
ORIGINAL = 16  # tokens, where scalings begin
LENGTHS = (ORIGINAL - 1, ORIGINAL, ORIGINAL + 1, 64)
PROMPTS = 6  # of 40 tokens
PROMPT, NEW = 12, 12  # tokens of the text that grows

_DYNAMIC = tiny._scaled(
    rope_type="dynamic", factor=4.0, original_max_position_embeddings=ORIGINAL
)  # fmt: skip
# The name of the model whose weights and fields it has, and what its fields have beside these.
SCALINGS = {
    "linear": ("llama_linear", {}),
    "llama3": ("llama_llama3_tied", {}),
    "yarn": ("llama_yarn", {}),
    "longrope": ("phi3_longrope", {}),
    "dynamic": ("llama", {"rope_parameters": _DYNAMIC, "max_position_embeddings": ORIGINAL}),
}


def stored():
    """What was recorded: {"kl": {model: number}, "long": {scaling: {...}}}."""
    return json.loads(STORED.read_text())


def prompts():
    """Token ids for `kl`."""
    return [(tiny.token_ids() * (3 + 2 * i)) % 93 + 3 for i in range(PROMPTS)]


def divergences(truth, made):
    """sum p (log p - log q) of each row of logits (rows, vocabulary)."""

    def chances(logits):
        wide = np.asarray(logits, np.float64)
        wide = wide - wide.max(-1, keepdims=True)
        return wide - np.log(np.exp(wide).sum(-1, keepdims=True))

    p, q = chances(truth), chances(made)
    return (np.exp(p) * (p - q)).sum(-1)


def _loaded(name, dtype, changes=None):
    """A model of transformers with the weights of language_models.py."""
    import transformers
    from safetensors import safe_open
    from safetensors.numpy import save_file

    family, fields = tiny.MODELS[name]
    config_class = getattr(transformers, f"{family}Config", None)
    if family == "Gemma3":
        config_class = transformers.Gemma3TextConfig
    suffix = "LMHeadModel" if family == "GPT2" else "ForCausalLM"
    model_class = getattr(transformers, family + suffix)
    with tempfile.TemporaryDirectory() as folder:
        config = config_class(**(fields | (changes or {})))
        model_class(config).save_pretrained(folder)
        file = pathlib.Path(folder) / "model.safetensors"
        with safe_open(file, "np") as opened:
            keys = opened.keys()
            shapes = {key: opened.get_slice(key).get_shape() for key in keys}
        save_file(
            {key: tiny.weights(key, shape, name) for key, shape in shapes.items()},
            file, metadata={"format": "pt"},
        )  # fmt: skip
        found = json.loads((pathlib.Path(folder) / "config.json").read_text())
        model = model_class.from_pretrained(folder, dtype=dtype, attn_implementation="eager")
    return model.eval(), found


def record():
    import torch

    made = {"kl": {}, "long": {}}
    for name in tiny.MODELS:
        rows = []
        for dtype in (torch.float32, torch.bfloat16):
            model, _ = _loaded(name, dtype)
            with torch.no_grad():
                each = [model(torch.from_numpy(p)[None], use_cache=False) for p in prompts()]
            rows.append(np.concatenate([one.logits[0].float().numpy() for one in each]))
        made["kl"][name] = float(np.median(divergences(*rows)))
        print(name, made["kl"][name], file=sys.stderr)
    for kind, (name, changes) in SCALINGS.items():
        model, config = _loaded(name, torch.float32, changes)
        lengths = {}
        with torch.no_grad():
            for length in LENGTHS:
                ids = torch.from_numpy(tiny.token_ids(length))[None]
                lengths[length] = model(ids, use_cache=False).logits[0, -1].tolist()
            ids = torch.from_numpy(tiny.token_ids(PROMPT))[None]
            margins = []
            for _ in range(NEW):  # the whole text anew for each token
                best = model(ids, use_cache=False).logits[0, -1].topk(2)
                margins.append(float(best.values[0] - best.values[1]))
                ids = torch.cat([ids, best.indices[:1][None]], 1)
        made["long"][kind] = {
            "config": config, "logits": lengths, "tokens": ids[0, PROMPT:].tolist(),
            "margins": margins,
        }  # fmt: skip
        print(kind, made["long"][kind]["tokens"], min(margins), file=sys.stderr)
    rounded = json.loads(json.dumps(made), parse_float=lambda text: float(f"{float(text):.7g}"))
    STORED.write_text(json.dumps(rounded))


if __name__ == "__main__":
    record()
