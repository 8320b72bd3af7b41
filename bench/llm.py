"""Language models of random weights in the shapes of known ones: decoding, prompts, many texts.

    llm.py [--models 8b,1b,30b-a3b] [--formats bfloat16,fp8,q4_k]
        [--parts decode,prompt,draft,offline,deterministic,load,start]
        [--drafts ngram,jacobi,eagle3,mtp] [--draft-model 1b] [--draft-tokens 4]
        [--folder PATH] [--repeats 3]

Steps with 1024 tokens of context: the time between tokens as a caller sees it and that of the graph
alone. Prompts: to the first token. Draft: 256 tokens of a text that repeats itself, with the
guesses of --drafts (eagle3 is a head of random weights, mtp needs mimo) and without: the most that
they can save; with --draft-model, a name or a path, also with drafts of that model or head.
Beside it a text that is drawn, where drafts must cost 2 % at most. Offline: 256 prompts of 512
tokens, 128 new tokens each, as one call. Deterministic: steps of 1 and of 32 texts beside those of
deterministic=True. Weights are random, which times the same (experts are then chosen evenly).
vLLM's figures are those of published.json. The simulated device has a tiny model.

Load and start (llm_files.py) run where --parts names them. They write files to --folder, where they
stay, or to a temporary one (16 GB for 8b). Load is GB/s of the files from the page cache, and
start the time from the start of a process to its first token, with an empty cache of compiled
kernels and with a full one.
"""

from __future__ import annotations

import argparse
import gc
import pathlib
import time
from typing import Any

import llm_files

import harness
import kernwright as kw
from kernwright import llm
from kernwright.llm import _measuring
from kernwright.llm._config import Config
from kernwright.llm._fill import RandomFilling
from kernwright.llm._heads import Head
from kernwright.llm._weights.memory import place
from kernwright.llm.models.eagle3 import Eagle3, feature_layers

_LLAMA3 = {
    "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}  # fmt: skip
CONFIGS: dict[str, dict[str, Any]] = {
    "8b": {
        "architectures": ["LlamaForCausalLM"], "vocab_size": 128256, "hidden_size": 4096,
        "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
        "num_key_value_heads": 8, "max_position_embeddings": 16384, "rope_theta": 500000.0,
        "rope_scaling": _LLAMA3, "rms_norm_eps": 1e-5, "dtype": "bfloat16",
    },
    "1b": {
        "architectures": ["LlamaForCausalLM"], "vocab_size": 128256, "hidden_size": 2048,
        "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 32,
        "num_key_value_heads": 8, "head_dim": 64, "max_position_embeddings": 16384,
        "rope_theta": 500000.0, "rope_scaling": _LLAMA3 | {"factor": 32.0},
        "rms_norm_eps": 1e-5, "tie_word_embeddings": True, "dtype": "bfloat16",
    },
    "30b-a3b": {
        "architectures": ["Qwen3MoeForCausalLM"], "vocab_size": 151936, "hidden_size": 2048,
        "intermediate_size": 6144, "num_hidden_layers": 48, "num_attention_heads": 32,
        "num_key_value_heads": 4, "head_dim": 128, "max_position_embeddings": 16384,
        "rope_theta": 1000000.0, "rms_norm_eps": 1e-6, "num_experts": 128,
        "num_experts_per_tok": 8, "moe_intermediate_size": 768, "norm_topk_prob": True,
        "dtype": "bfloat16",
    },
    "mimo": {
        "architectures": ["MiMoForCausalLM"], "model_type": "mimo", "vocab_size": 151680,
        "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 36,
        "num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 32768,
        "rope_theta": 640000.0, "rms_norm_eps": 1e-5, "attention_bias": True,
        "num_nextn_predict_layers": 1, "dtype": "bfloat16",
    },
    "tiny": {
        "architectures": ["LlamaForCausalLM"], "vocab_size": 256, "hidden_size": 64,
        "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "max_position_embeddings": 2048, "dtype": "float32",
    },
}  # fmt: skip


def measured(config: dict[str, Any], format: str, options: argparse.Namespace) -> dict[str, Any]:
    """All parts of one model. Each part stands alone: one that fails tells why."""
    quantize = None if format == "bfloat16" else format
    found: dict[str, Any] = {}
    if {"load", "start"} & set(options.parts):
        with llm_files.written(config, options.folder) as folder:
            _run(llm_files.parts(folder, quantize, options), found)
    if not set(options.parts) - {"load", "start"}:
        return found
    begin = time.perf_counter()
    model = llm.load(random=config, quantize=quantize)
    found["load_seconds"] = time.perf_counter() - begin
    simulated = model.device.is_simulated
    context, steps = (64, 4) if simulated else (1024, options.steps)
    parts: list[tuple[str, Any]] = []
    drafts: dict[str, Any] = {
        "ngram": lambda: llm.Draft(),
        "jacobi": lambda: llm.Draft("jacobi"), "mtp": lambda: llm.Draft("mtp"),
        "eagle3": lambda: llm.Draft(model=random_head(model), tokens=options.draft_tokens),
    }  # fmt: skip
    if "decode" in options.parts:
        parts += [
            (f"decode {rows}", lambda rows=rows: _measuring.decoding(model, rows, context, steps))
            for rows in options.rows
        ]
    if "deterministic" in options.parts:
        parts.append(("deterministic", lambda: deterministic_cost(model, context, steps)))
    if "prompt" in options.parts:
        lengths = (32,) if simulated else (512, 2048, 8192)
        parts += [(f"prompt {n}", lambda n=n: _measuring.prompt(model, n)) for n in lengths]
    if "draft" in options.parts:
        new = 32 if simulated else 256
        parts += [
            ("draft" if name == "ngram" else f"draft {name}",
             lambda make=make: _measuring.drafting(model, make(), new))
            for name, make in drafts.items() if name in options.drafts
        ]  # fmt: skip
        if options.draft_model is not None:
            parts.append(("draft model", lambda: _measuring.drafting(model, drafter(), new)))
    if "offline" in options.parts:
        sizes = (4, 16, 4) if simulated else (256, 512, 128)
        parts.append(("offline", lambda: _measuring.throughput(model, *sizes)))

    def drafter() -> llm.Draft:
        name = options.draft_model
        small = llm.load(random=CONFIGS[name]) if name in CONFIGS else llm.load(name)
        return llm.Draft(model=small, tokens=options.draft_tokens)

    _run(parts, found)
    return found


def random_head(model: Any) -> Head:
    """An EAGLE-3 head of random weights for a model, of the shape that published ones have."""
    fields = {
        **{name: value for name, value in model.config.fields.items() if name != "rope_scaling"},
        "architectures": ["LlamaForCausalLMEagle3"], "num_hidden_layers": 1,
        "draft_vocab_size": min(32000, model.config.vocab_size),
    }  # fmt: skip
    config = Config.from_fields(fields, source="a random EAGLE-3 head")
    module: Any = Eagle3(config)
    module.embedding = None
    filling = RandomFilling(module, config.dtype, model.device, None, config.source)
    place(filling, "device", None, model.device, 0)
    module.embedding = model.module.embedding
    module.eval()
    tokens = kw.arange(fields["draft_vocab_size"], dtype="int32")
    return Head(config, module, tokens, model, feature_layers(config, model.config.num_layers))


def _run(parts: list[tuple[str, Any]], found: dict[str, Any]) -> None:
    for name, part in parts:
        try:
            found[name] = part()
        except kw.errors.Error as error:
            found[name] = {"error": f"{type(error).__name__}: {error}"}
        print(name, found[name], flush=True)


def deterministic_cost(model: Any, context: int, steps: int) -> list[dict[str, Any]]:
    """The step with deterministic=True beside the one without, of 1 and of 32 texts."""
    made = []
    for rows in (1, 32):
        plain, same = (
            _measuring.decoding(model, rows, context, steps, deterministic)
            for deterministic in (False, True)
        )
        made.append({
            "rows": rows, "context": context, "plain_ms": plain["ms"], "ms": same["ms"],
            "plain_graph_ms": plain["graph_ms"], "graph_ms": same["graph_ms"],
            "cost": same["ms"] / plain["ms"] - 1, "mark": 0.10,
        })  # fmt: skip
    return made


def _list(text: str) -> list[str]:
    return text.split(",")


def main() -> None:
    """Measures, and writes the document."""
    parser = argparse.ArgumentParser(description=__doc__)
    simulated = kw.current_device().is_simulated
    parser.add_argument("--models", type=_list, default=["tiny"] if simulated else ["8b", "1b"])
    parser.add_argument("--formats", type=_list, default=["bfloat16"])
    parser.add_argument("--parts", type=_list, default=["decode", "prompt", "draft", "offline"])
    parser.add_argument("--rows", type=lambda t: [int(x) for x in t.split(",")],
                        default=[1, 4] if simulated else [1, 8, 64, 256])  # fmt: skip
    parser.add_argument("--steps", type=int, default=64)
    parser.add_argument("--draft-model", metavar="NAME|PATH")
    parser.add_argument("--draft-tokens", type=int)
    parser.add_argument("--drafts", type=_list, default=["ngram", "jacobi", "eagle3"])
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=pathlib.Path, default=harness.RESULTS / "llm.json")
    options = parser.parse_args()
    document: dict[str, Any] = {"machine": harness.machine(), "models": {}}
    for name in options.models:
        for format in options.formats:
            label = name if format == "bfloat16" else f"{name} {format}"
            print(label, flush=True)
            document["models"][label] = measured(CONFIGS[name], format, options)
            gc.collect()
            harness.save(options.out, document)


if __name__ == "__main__":
    main()
