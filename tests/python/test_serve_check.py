"""kernwright serve --check: the plan of memory before anything is loaded."""

import json
import re
import shutil
import socket

import pytest
from adapter_files import adapter_written
from serving import TINY

import kernwright as kw
from kernwright import llm
from kernwright._support.sizes import size_in_bytes
from kernwright.cli import main
from kernwright.llm._load import plan
from kernwright.llm._weights.memory import budget_bytes

HUGE = {
    "architectures": ["LlamaForCausalLM"], "vocab_size": 128256, "hidden_size": 8192,
    "intermediate_size": 28672, "num_hidden_layers": 80, "num_attention_heads": 64,
    "num_key_value_heads": 8, "max_position_embeddings": 8192, "dtype": "bfloat16",
}  # fmt: skip


def check(capsys, *arguments):
    """The exit code and the text."""
    code = main(["serve", *map(str, arguments), "--check"])
    return code, capsys.readouterr().out


def bytes_of_parameters(model):
    return sum(each.nbytes for each in dict(model.module.named_parameters()).values())


def test_the_plan_has_what_loading_takes(capsys):
    code, out = check(capsys, TINY, "--max-rows", 2, "--also", f"draft={TINY}_draft")
    weights = bytes_of_parameters(llm.load(TINY))
    assert code == 0 and f"weights  {weights / 2**30:.3f} GiB" in out
    assert "context  512 tokens" in out and "64 pages, 1024 tokens, 2.0 texts" in out
    assert "draft: LlamaForCausalLM on " in out and out.endswith("it fits\n")


def test_the_plan_has_a_draft_model_and_its_caches(capsys):
    target, draft = llm.load(TINY), llm.load(f"{TINY}_draft")
    code, out = check(capsys, TINY, "--max-rows", 2, "--draft", f"{TINY}_draft")
    assert code == 0 and f"weights  {bytes_of_parameters(draft) / 2**30:.3f} GiB" in out
    assert "draft    LlamaForCausalLM" in out
    token = sum(2 * heads * n * 2 for model in (target, draft) for heads, n in model.cache_layers())
    taken = bytes_of_parameters(target) + bytes_of_parameters(draft) + 1024 * token
    assert f"memory   {taken / 2**30:.3f} GiB of" in out


@pytest.mark.parametrize(
    ("memory", "options"),
    [("device", {}), ("stream", {}), ("stream", {"budget": "1500KB"}),
     ("device", {"dtype": "float32"}), ("device", {"max_length": 64})],
)  # fmt: skip
def test_plans_are_what_load_does(memory, options):
    planned = plan(TINY, memory=memory, **options)
    model = llm.load(TINY, memory=memory, **options)
    assert planned.config == model.config and planned.memory == model.memory
    item = {"bfloat16": 2, "float32": 4}[options.get("dtype", model.config.dtype)]
    assert planned.token_bytes == sum(2 * heads * n * item for heads, n in model.cache_layers())


def test_nothing_is_loaded_and_the_exit_code_tells_what_does_not_fit(capsys, tmp_path):
    config = tmp_path / "config.json"
    config.write_text(json.dumps(HUGE))
    before = kw.memory.stats()
    code, out = check(capsys, "--random", config, "--memory", "device")
    after = kw.memory.stats()
    assert code == 1 and "it does not fit" in out and after["used"] <= before["used"]
    layer = 2 * 8192**2 + 2 * 8192 * 1024 + 3 * 8192 * 28672 + 2 * 8192
    parameters = 2 * 128256 * 8192 + 80 * layer + 8192
    found = re.search(r"weights  ([0-9.]+) GiB", out)
    assert found and float(found[1]) == pytest.approx(2 * parameters / 2**30, abs=0.001)
    assert "none: kv_memory of 0 bytes holds no page" in out
    assert check(capsys, TINY, "--kv-memory", "1TiB", "--max-rows", 10**9)[0] == 1
    assert check(capsys, TINY, "--kv-memory", "64KiB")[0] == 0


def test_models_that_take_turns_fit_one_by_one(capsys):
    free = kw.current_device().memory_info().free
    each = ["--kv-memory", free * 2 // 3, "--max-rows", 10**6, "--also", f"b={TINY}_draft"]
    assert check(capsys, TINY, *each)[0] == 1
    assert check(capsys, TINY, *each, "--lazy")[0] == 1
    code, out = check(capsys, TINY, *each, "--lazy", "--idle-unload", 60)
    assert code == 0 and out.count("it fits") == 2


def test_wrong_files_are_told_and_the_port_is_left_alone(capsys, tmp_path):
    folder = shutil.copytree(TINY, tmp_path / "model")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert check(capsys, folder, "--port", taken.getsockname()[1])[0] == 0
    (folder / "config.json").write_text(json.dumps({**HUGE, "vocab_size": 7}))
    assert main(["serve", str(folder), "--check"]) == 1
    assert "does not fit Llama" in capsys.readouterr().err


def adapters_at(folder):
    """Two adapters of other layers and ranks."""
    attention = {"model.layers.0.self_attn.q_proj": (128, 128)}
    dense = {"model.layers.0.self_attn.q_proj": (128, 128),
             "model.layers.3.mlp.down_proj": (128, 384)}  # fmt: skip
    adapter_written(folder / "a", attention, rank=20)
    adapter_written(folder / "b", dense, rank=3)
    return [str(folder / name) for name in "ab"]


def slots_of(model):
    """Bytes of the arrays that layers have for adapters."""
    layers = model._adapters._layers.values()
    arrays = [each for layer in layers for each in (layer.down, layer.up, layer.used, layer._ends)]
    return sum(each.nbytes for each in arrays)


def test_plans_of_adapters_are_what_loading_takes(tmp_path):
    paths, limits = adapters_at(tmp_path), {"max_adapters": 3, "max_adapter_rank": 24}
    planned = plan(TINY, **limits).adapters
    model = llm.load(TINY, **limits)
    for number, path in enumerate(paths):
        model.load_adapter(path)
        assert planned.nbytes(paths[: number + 1]) == slots_of(model) > 0
    assert planned.nbytes([]) == 0
    every = linear_modules() | {"lm_head": (1024, 128)}
    adapter_written(tmp_path / "c", every, rank=24)
    model.load_adapter(tmp_path / "c")
    assert planned.most_bytes() == slots_of(model)
    with pytest.raises(llm.ModelError, match="2 adapters, and 1 slots"):
        plan(TINY, max_adapters=1).adapters.nbytes(paths)
    with pytest.raises(llm.ModelError, match="rank 20, and the model takes 8 at most"):
        plan(TINY, max_adapter_rank=8).adapters.nbytes(paths)


def linear_modules():
    """The (outputs, inputs) of all linear layers of the files."""
    file = kw.SafeTensors(f"{TINY}/model.safetensors")
    return {name.removesuffix(".weight"): file.shape(name) for name in file
            if len(file.shape(name)) == 2 and "embed" not in name}  # fmt: skip


def test_adapters_and_the_host_cache_are_told_and_count(capsys, tmp_path):
    paths = adapters_at(tmp_path)
    modules = ["--lora-modules", f"a={paths[0]}", f"b={paths[1]}"]
    told = plan(TINY).adapters.nbytes(paths)
    code, out = check(capsys, TINY, *modules)
    assert code == 0 and f"adapters {told / 2**30:.3f} GiB\n" in out and "host " not in out
    code, out = check(capsys, TINY, *modules, "--allow-adapters", tmp_path)
    most = plan(TINY).adapters.most_bytes()
    assert code == 0 and f"adapters {most / 2**30:.3f} GiB, if clients load" in out
    adapters = ["--max-adapters", 4096, "--max-adapter-rank", 4096]
    assert check(capsys, TINY, *adapters)[0] == 0
    code, out = check(capsys, TINY, *adapters, "--allow-adapters", tmp_path)
    assert code == 1 and "it does not fit" in out
    code, out = check(capsys, TINY, "--host-cache", "1GiB", "--also", f"draft={TINY}_draft")
    assert code == 0 and "\nhost     2.000 GiB of " in out and out.count("it fits") == 2
    code, out = check(capsys, TINY, "--host-cache", "100TiB")
    assert code == 1 and "102400.000 of them copies of pages: it does not fit\n" in out
    shutil.rmtree(paths[1])
    assert main(["serve", TINY, *modules, "--check"]) == 1
    assert "is no adapter" in capsys.readouterr().err


def test_sizes_have_one_spelling_everywhere():
    units = {
        "7": 7, "0": 0, "7B": 7, "2K": 2048, "2k": 2048, "2KB": 2000, "2kib": 2048, "16M": 16 << 20,
        "1.5 GiB": 3 << 29, "4GB": 4 * 10**9, "4Gi": 4 << 30, " 1T ": 1 << 40, "1TB": 10**12,
    }  # fmt: skip
    for text, size in units.items():
        assert size_in_bytes(text) == size, text
    wrong = ("", " ", "4X", "-4G", "4 G B", "G", "1e9", "0x10", "4iB", "1.G", "nan", "\u0661K")
    assert [size_in_bytes(each) for each in wrong] == [None] * len(wrong)
    assert budget_bytes("auto", "4G") == 4 << 30
