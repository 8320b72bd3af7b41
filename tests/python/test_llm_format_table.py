"""The table of families and formats in docs/model_files.md, made of what really loads.

python tests/python/test_llm_format_table.py    # writes it anew
"""

import json
import pathlib
import sys
import tempfile

import gguf_models
import model_files
import numpy as np
import pytest
import test_llm_formats
import test_llm_four_bits
from test_llm_families import STORED

import kernwright as kw
from kernwright import llm

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "model_files.md"
BEGIN, END = "<!-- families and formats: begin -->\n", "<!-- families and formats: end -->\n"
METHODS = {
    "fp8": test_llm_formats.METHODS["fp8 rows"],
    "fp8 tiles": test_llm_formats.METHODS["fp8 block"],
    "int8": test_llm_formats.METHODS["int8"],
    "NF4": test_llm_formats.METHODS["nf4"],
    "GPTQ": test_llm_formats.METHODS["gptq"],
    "AWQ": test_llm_formats.METHODS["awq"],
    "int4": test_llm_formats.METHODS["int4"],
    "NVFP4": test_llm_four_bits.METHODS["compressed-tensors"],
}
COLUMNS = [*METHODS, "GGUF", "quantize="]
# A recorded model of each architecture.
MODELS = {each["config"]["architectures"][0]: name for name, each in reversed(STORED.items())}


def fields_of(name):
    few = {"num_hidden_layers": 1, "n_layer": 1}
    fields = model_files.fields_of(name)
    if "first_k_dense_replace" not in fields:  # else both kinds of layers are there
        fields |= {key: value for key, value in few.items() if key in fields}
        for key in ("layer_types", "no_rope_layers"):
            if isinstance(fields.get(key), list):
                fields[key] = fields[key][:1]
    return fields


def is_product(name, shape):
    """Whether files of few bits have such a weight in few bits: no table, router or norm."""
    other = ("embed", "wte", "wpe", "lm_head", "shared_expert_gate")
    return len(shape) == 2 and min(shape) >= 32 and not any(each in name for each in other)


def written(folder, fields, method):
    """A folder whose products are in few bits."""
    config, convert = METHODS[method]
    arrays = {}
    for name, array in model_files.arrays_of(model_files.shapes_of(fields), "float32").items():
        if name.endswith(".weight") and is_product(name, array.shape):
            upright = array.mT.copy() if ".c_" in name and "n_embd" in fields else array
            base = name.removesuffix(".weight")
            arrays |= {base + end: part for end, part in convert(upright)[0].items()}
        else:
            arrays[name] = array
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(fields | {"quantization_config": config}))
    kw.save_safetensors(folder / "model.safetensors", arrays)
    return folder


def gguf(file, fields):
    tensors = model_files.arrays_of(model_files.shapes_of(fields), "float32")
    numbers = {name: array.numpy() for name, array in tensors.items()}

    def formats(name, shape):
        is_table = name.startswith(("token_embd", "position_embd", "output"))
        return "q8_0" if len(shape) > 1 and shape[-1] % 32 == 0 and not is_table else None

    return gguf_models.written(file, numbers, fields, formats)


def linear_weights(model):
    return [
        module.weight
        for path, module in model.module.named_modules()
        if isinstance(module, llm.models.Linear) and not path.endswith(("head", "gate", "router"))
    ]


def cell(fields, column, folder):
    """What comes of it: "yes" where few bits stay, "as numbers" where they do not, "-" where files
    are refused."""
    try:
        if column == "GGUF":
            if fields["architectures"][0] not in gguf_models.KINDS:
                return "-"
            model = llm.load(gguf(folder / "m.gguf", fields))
        elif column == "quantize=":
            model = llm.load(random=fields, quantize="q8_0")
        else:
            model = llm.load(written(folder / column, fields, column))
    except llm.ModelError:
        return "-"
    few = [not isinstance(weight, kw.Array) for weight in linear_weights(model)]
    return "yes" if all(few) else "partly" if any(few) else "as numbers"


def row(architecture, folder):
    fields = fields_of(MODELS[architecture])
    experts = any(".experts." in name for name in model_files.shapes_of(fields))
    cells = [cell(fields, column, folder) for column in COLUMNS]
    return f"| `{architecture}` | {' | '.join(cells)} | {'as numbers' if experts else ''} |\n"


def head():
    return f"| | {' | '.join(COLUMNS)} | experts |\n{'|---' * (len(COLUMNS) + 2)}|\n"


def rows_of_page():
    text = PAGE.read_text()
    lines = text[text.index(BEGIN) + len(BEGIN) : text.index(END)].splitlines(keepends=True)
    assert "".join(lines[:2]) == head()
    return {line.split("`")[1]: line for line in lines[2:]}


def test_each_architecture_has_a_row():
    known = {name for name in llm.known_architectures() if not name.startswith(("Mine", "Own"))}
    known.remove("MiMoForCausalLM")  # Qwen 2 but for its layer for drafts, see the page
    known.remove("Gemma3ForConditionalGeneration")  # Gemma 3, see the page
    assert set(rows_of_page()) == set(MODELS) == known


@pytest.mark.parametrize("architecture", sorted(MODELS))
def test_rows_are_what_loads(architecture, tmp_path):
    assert rows_of_page()[architecture] == row(architecture, tmp_path)


def test_a_file_of_other_shapes_is_refused(tmp_path):
    """Else "yes" would say nothing."""
    fields = fields_of("llama")
    folder = written(tmp_path / "m", fields, "fp8")
    (folder / "config.json").write_text(
        json.dumps(json.loads((folder / "config.json").read_text()) | {"intermediate_size": 64})
    )
    with pytest.raises(llm.ModelError, match="does not fit Llama"):
        llm.load(folder)
    assert np.prod(model_files.shapes_of(fields)["model.norm.weight"]) == fields["hidden_size"]


if __name__ == "__main__":
    page = PAGE.read_text()
    made = [head()]
    for name in sorted(MODELS):
        with tempfile.TemporaryDirectory() as place:
            made.append(row(name, pathlib.Path(place)))
            print(made[-1], end="", file=sys.stderr)
    before, after = page.split(BEGIN)[0], page.split(END)[1]
    PAGE.write_text(before + BEGIN + "".join(made) + END + after)
