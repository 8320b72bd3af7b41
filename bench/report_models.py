"""Figures of language models, for report.py."""

from __future__ import annotations

import json
from typing import Any

from report_text import HERE, load, measured_table

MODELS = {
    "8b": "Llama-3.1-8B", "1b": "Llama-3.2-1B", "30b-a3b": "Qwen3-30B-A3B",
}  # fmt: skip


def _title(name: str) -> str:
    model, _, format = name.partition(" ")
    return f"{MODELS.get(model, model)}, {format or 'bfloat16'}"


def language_models() -> str | None:
    """Steps, prompts and whole calls, beside vLLM's of published.json."""
    document = load("llm")
    if document is None:
        return None
    peers = json.loads((HERE / "published.json").read_text()).get("vllm", {})
    rows = []
    for name, parts in document["models"].items():
        for part, found in parts.items():
            if isinstance(found, dict) and "error" not in found:
                rows.append(_row(name, part, found, peers.get("figures", {}).get(name, {})))
    columns = ("", "ours", "tokens a second", "vLLM", "vLLM / ours")
    title = "Language models of random weights, 1024 tokens of context"
    note = f"\nvLLM: {peers['source']}.\n" if peers else ""
    return measured_table(title, document, columns, rows) + note


def _row(
    name: str, part: str, found: dict[str, Any], peers: dict[str, float]
) -> tuple[str, str, str, str, str]:
    kind, _, number = part.partition(" ")
    rate, theirs = found["tokens_per_second"], peers.get(part)
    if kind == "offline":
        label = (
            f"{_title(name)}: {found['prompts']} prompts of {found['prompt_tokens']} tokens, "
            f"{found['new_tokens']} new each"
        )
        shown = f"{theirs:.0f} tokens/s" if theirs else ""
        ratio = f"{rate / theirs:.2f}" if theirs else ""
        return label, f"{found['seconds']:.2f} s", f"{rate:.0f}", shown, ratio
    if kind == "decode":
        label, ms = f"{_title(name)}: a step of {number} sequences", found["step_ms"]
    else:
        label, ms = f"{_title(name)}: a prompt of {number} tokens, first token", found["ms"]
    shown = f"{theirs:.2f} ms" if theirs else ""
    return label, f"{ms:.2f} ms", f"{rate:.0f}", shown, f"{theirs / ms:.2f}" if theirs else ""
