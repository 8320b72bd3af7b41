"""Random tiny models of each family beside transformers on the same machine, where it is installed.

On a GPU both run there. KERNWRIGHT_TEST_SEED draws other extents.
"""

import os
import random

import numpy as np
import pytest
from test_llm_families import distance, language_models
from test_llm_positions import more

from kernwright import llm

_WHY = "transformers is compared with where torch and transformers are installed"
torch = pytest.importorskip("torch", reason=_WHY)
transformers = pytest.importorskip("transformers", reason=_WHY)

SEED = int(os.environ.get("KERNWRIGHT_TEST_SEED", "1"))
torch.backends.cuda.matmul.allow_tf32 = False  # float32 is float32
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def drawn(name):
    """The fields of a family with other extents."""
    draw = random.Random(f"{name} {SEED}")
    fields = dict(language_models.MODELS[name][1])
    if "n_embd" in fields:
        return fields | {"vocab_size": draw.choice([96, 131]), "n_layer": draw.randint(1, 3)}
    least = 6 if name == "gemma3" else 2  # of each kind of layer one
    fields |= {
        "vocab_size": draw.choice([96, 131, 200]), "intermediate_size": draw.choice([96, 160, 224]),
        "num_hidden_layers": draw.randint(least, least + 1),
    }  # fmt: skip
    if name != "deepseek_v2":
        fields["num_key_value_heads"] = draw.choice([1, 2, 4])
    return fields


def peer(name, folder, fields, dtype):
    """transformers' model of these fields; its files are in the folder."""
    family = language_models.MODELS[name][0]
    config_class = getattr(transformers, f"{family}Config", None)
    if family == "Gemma3":
        config_class = transformers.Gemma3TextConfig
    suffix = "LMHeadModel" if family == "GPT2" else "ForCausalLM"
    model_class = getattr(transformers, family + suffix)
    if not folder.exists():
        made = model_class(config_class(**fields))
        with torch.no_grad():
            for key, parameter in made.named_parameters():
                numbers = language_models.weights(key, tuple(parameter.shape), name)
                parameter.copy_(torch.from_numpy(numbers))
        made.save_pretrained(folder)
    model = model_class.from_pretrained(folder, dtype=dtype, attn_implementation="eager")
    return model.eval().to(DEVICE)


def logits_of(model, prompts):
    with torch.no_grad():
        made = [model(torch.from_numpy(each)[None].to(DEVICE), use_cache=False) for each in prompts]
    return np.concatenate([each.logits[0].float().cpu().numpy() for each in made])


def ours(folder, dtype, prompts):
    model = llm.load(folder, dtype=dtype)
    return model, np.concatenate([model.logits(each).numpy() for each in prompts])


@pytest.mark.parametrize("name", language_models.MODELS)
def test_live(name, tmp_path):
    folder, fields = tmp_path / "m", drawn(name)
    prompts = more.prompts()[:3]
    wide = peer(name, folder, fields, torch.float32)
    truth = logits_of(wide, prompts)
    model, made = ours(folder, "float32", prompts)
    assert distance(made, truth) < 1e-4

    tokens = prompts[0][:20].tolist()
    text = model.generate(tokens, max_tokens=6, ignore_eos=True)
    for token in text.tokens:
        row = logits_of(wide, [np.array(tokens)])[-1]
        assert row.max() - row[token] < 1e-3 * np.abs(row).max()  # the best, or as good
        tokens.append(token)

    theirs = more.divergences(truth, logits_of(peer(name, folder, fields, torch.bfloat16), prompts))
    _, narrow = ours(folder, "bfloat16", prompts)
    found, limit = np.median(more.divergences(truth, narrow)), 1.1 * np.median(theirs)
    assert found <= limit, f"bfloat16 diverges by {found}, at most {limit} by transformers'"
