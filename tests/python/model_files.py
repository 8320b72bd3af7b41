"""Files of tiny random models of each family, named as the family's files are."""

import json
import re

import gguf_models
import numpy as np
from test_llm_families import STORED

import kernwright as kw
from kernwright import llm
from kernwright.llm._registry import class_of
from kernwright.llm._weights.parameters import Parameters

# Extents of the recorded models, and those with whole blocks of 64 numbers in each row.
_EXTENTS = {
    "hidden_size": 128, "n_embd": 128, "intermediate_size": 256, "moe_intermediate_size": 64,
    "shared_expert_intermediate_size": 128, "num_hidden_layers": 2, "n_layer": 2,
    "kv_lora_rank": 64, "q_lora_rank": 64,
}  # fmt: skip


def fields_of(name, **changes):
    """config.json of a recorded model with other extents."""
    fields = json.loads(json.dumps(STORED[name]["config"]))
    made = {key: value for key, value in _EXTENTS.items() if fields.get(key) is not None}
    hidden, heads = fields.get("hidden_size"), fields.get("num_attention_heads")
    if hidden and fields.get("head_dim") == hidden // heads:
        made["head_dim"] = made["hidden_size"] // heads
    if isinstance(fields.get("layer_types"), list):
        made["layer_types"] = fields["layer_types"][: made["num_hidden_layers"]]
    return fields | made | {"dtype": "bfloat16"} | changes


def shapes_of(fields):
    """The names and shapes of the tensors that files of such a model have."""
    config = llm.Config.from_fields(fields)
    kind = class_of(config.architecture, "the test")
    parameters = Parameters(kind(config))
    slots, first = parameters.slots, parameters.first
    made, covered = {}, set()
    names = sorted(kind.names.items(), key=lambda item: not item[0].startswith("transformer."))
    for name, target in sorted(names, key=lambda item: ":" in item[1]):  # whole ones first
        if name.endswith("_blocks"):
            continue  # of MXFP4
        path, stack, part, change = re.fullmatch(
            r"([^:|\[]+)(\[\*\])?(?::([^|]+))?(?:\|(.+))?", target
        ).groups()
        for slot_path in first.values():
            found = re.fullmatch(re.escape(path).replace(r"\*", "([0-9]+)"), slot_path)
            if found is None or {(slot_path, None), (slot_path, part)} & covered:
                continue
            covered.add((slot_path, part))
            slot = slots[slot_path]
            shape = list(slot.unread.shape[1:] if stack else slot.unread.shape)
            if part is not None:
                rows = slot.holder.rows_of(part)
                axis = len(shape) - (1 if path.endswith("bias") else 2)
                shape[axis] = rows.stop - rows.start
            if change is not None and change.endswith("T"):
                shape[-2:] = shape[:-3:-1]
            for entry in range(slot.unread.shape[0]) if stack else (None,):
                full = name
                for number in (*found.groups(), entry):
                    full = full.replace("*", str(number), 1)
                made[full] = tuple(shape)
    return made


def arrays_of(shapes, dtype="bfloat16"):
    draws = np.random.default_rng(len(shapes))
    made = {}
    for name, shape in shapes.items():
        numbers = draws.standard_normal(shape, np.float32) * 0.1
        made[name] = kw.asarray(numbers + 1 if "norm" in name else numbers).astype(dtype)
    return made


def written(folder, name, **changes):
    """A folder of Hugging Face's layout."""
    fields = fields_of(name, **changes)
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(fields))
    arrays = arrays_of(shapes_of(fields), fields.get("dtype", "bfloat16"))
    kw.save_safetensors(folder / "model.safetensors", arrays)
    return folder


def gguf_written(file, name, dtype="float16", metadata=None, **changes):
    """A GGUF file of one, with its matrices in `dtype`."""
    fields = fields_of(name, **changes)
    tensors = {
        key: array.numpy().astype(dtype if array.ndim > 1 else "float32")
        for key, array in arrays_of(shapes_of(fields), "float32").items()
    }
    return gguf_models.written(file, tensors, fields, **(metadata or {}))


def weights_of(model):
    """All parameters of a model as NumPy arrays, those of few bits by their parts."""
    made = {}

    def note(path, value):
        if isinstance(value, kw.Array):
            made[path] = value.view("uint8") if value.dtype.name.startswith("float8") else value
        elif value.__class__.__name__ == "ScaledWeight":
            note(f"{path}.codes", value.codes)
            note(f"{path}.scale", value.scale)
        elif value.__class__.__name__ == "PackedWeight":
            for i, part in enumerate(value.arrays):
                note(f"{path}.{value.format}.{i}", part)
        elif value.__class__.__name__ == "Parts":
            for part, weight in value.weights.items():
                note(f"{path}:{part}", weight)

    for path, module in model.module.named_modules():
        for key, value in vars(module).items():
            if not key.startswith("_"):
                note(f"{path}.{key}", value)
    return {path: array.numpy() for path, array in made.items()}
