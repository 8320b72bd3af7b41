"""LoRA adapters as PEFT writes them, with random numbers, and the same added to the weights."""

import json

import numpy as np

import kernwright as kw

PREFIX = "base_model.model."


def adapter_written(folder, modules, rank=4, *, alpha=None, seed=0, std=0.3, **settings):
    """A folder for modules of these (outputs, inputs); scale * B @ A of each, float64. A rank may
    be one of each module."""
    draws = np.random.default_rng(seed)
    ranks = rank if isinstance(rank, dict) else dict.fromkeys(modules, rank)
    usual = max(ranks.values())
    alpha = 2 * usual if alpha is None else alpha
    arrays, deltas = {}, {}
    for name, (outputs, inputs) in modules.items():
        down = draws.normal(0, std, (ranks[name], inputs)).astype(np.float32)
        up = draws.normal(0, std, (outputs, ranks[name])).astype(np.float32)
        root = np.sqrt(ranks[name]) if settings.get("use_rslora") else ranks[name]
        arrays[f"{PREFIX}{name}.lora_A.weight"] = kw.asarray(down)
        arrays[f"{PREFIX}{name}.lora_B.weight"] = kw.asarray(up)
        deltas[name] = up.astype(np.float64) @ down.astype(np.float64) * (alpha / root)
    own = {name: each for name, each in ranks.items() if each != usual}
    fields = {
        "peft_type": "LORA", "task_type": "CAUSAL_LM", "r": usual, "lora_alpha": alpha,
        "target_modules": sorted({name.rpartition(".")[2] for name in modules}), "bias": "none",
        "rank_pattern": own, "use_dora": False, "modules_to_save": None,
    }  # fmt: skip
    folder.mkdir(parents=True)
    (folder / "adapter_config.json").write_text(json.dumps(fields | settings))
    kw.save_safetensors(folder / "adapter_model.safetensors", arrays)
    return deltas


def merged(arrays, deltas):
    """Weights by name with the deltas of modules added. Conv1D of GPT-2 has them transposed."""
    made = {name: array.numpy().astype(np.float64) for name, array in arrays.items()}
    for name, delta in deltas.items():
        weight = made[f"{name}.weight"]
        made[f"{name}.weight"] = weight + (delta.T if ".c_" in name and "h." in name else delta)
    return {name: kw.asarray(each.astype(np.float32)) for name, each in made.items()}
