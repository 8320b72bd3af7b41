"""Figures of training steps, convolutions and recurrent networks, for report.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from report_text import error_by_norm, load, measured_table

MODELS = {"gpt2": "GPT-2 124M", "char": "a GPT of characters"}
SUBJECTS = {
    "ours": "kernwright, one graph",
    "logits": "kernwright, one graph, all logits at once",
    "eager": "torch, eager",
    "compiled": "torch.compile",
    "graph": "torch, a CUDA graph",
}


def training() -> str | None:
    return _models("speed", _speed)


def _speed(name: str, part: dict[str, Any], document: dict[str, Any]) -> str:
    rows = []
    for kind, subject in SUBJECTS.items():
        found = part.get(kind, {})
        if "step, ms" not in found:
            continue
        share = found["mfu"]
        rows.append(
            (
                subject,
                f"{found['step, ms']:.2f}",
                f"{found['tokens a second'] / 1e3:.0f}",
                share if isinstance(share, str) else f"{share * 100:.1f} %",
                f"{found['used_gb']:.1f}",
                f"{found.get('time / ours', 1):.2f}",
            )
        )
    columns = (
        "whole step in bfloat16",
        "ms",
        "thousand tokens a second",
        "of the data sheet's peak",
        "GB at most",
        "time / ours",
    )
    title = f"Training {name}, {part['batch']} rows of {part['length']} tokens"
    return measured_table(title, document, columns, rows)


def chain() -> str | None:
    document = load("train")
    if document is None or "error" in document.get("chain", {"error": ""}):
        return None
    part = document["chain"]
    rows = [
        (
            f"{dtype}, {name}",
            str(row["kernels"]),
            f"{row['gb_per_s']:.0f}",
            f"{row['of a copy']:.2f}",
        )
        for dtype in ("float32", "bfloat16")
        if dtype in part
        for name, row in part[dtype].items()
    ]
    columns = ("", "kernels", "GB/s", "of a copy's")
    title = f"A fused function of {part['operations']} elementwise operations"
    return measured_table(title, document, columns, rows)


def losses() -> str | None:
    return _models("losses", _losses)


def _losses(name: str, part: dict[str, Any], document: dict[str, Any]) -> str:
    rows = [
        (SUBJECTS[kind], *(f"{each:.4f}" for each in part[f"{kind} apart"].values()))
        for kind in ("ours", "eager")
        if f"{kind} apart" in part
    ]
    columns = ("in bfloat16", *(f"{each}, nats" for each in part["ours apart"]))
    reference = {"ours": "kernwright", "eager": "torch"}[part["reference"][0]]
    title = f"Losses of {part['steps']} steps of {name}, less those of {reference} in float32"
    return measured_table(title, document, columns, rows)


def starts() -> str | None:
    return _models("start", _starts)


def _starts(name: str, part: dict[str, Any], document: dict[str, Any]) -> str:
    rows = []
    for kind, subject in SUBJECTS.items():
        both = [part.get(f"{kind}, {caches}, s") for caches in ("cold", "warm")]
        if all(isinstance(each, float) for each in both):
            rows.append((subject, *(f"{each:.1f}" for each in both)))
    title = f"From the start of a process to the end of the first step of {name}"
    return measured_table(title, document, ("", "s, empty caches", "s, full caches"), rows)


def _models(part: str, make: Callable[[str, dict[str, Any], dict[str, Any]], str]) -> str | None:
    """The tables of one part of each model that has it."""
    document = load("train")
    found = (
        []
        if document is None
        else [
            make(title, document[name][part], document)
            for name, title in MODELS.items()
            if part in document.get(name, {}) and "error" not in document[name][part]
        ]
    )
    return "\n".join(found) or None


def convolutions() -> str | None:
    document = load("conv")
    if document is None:
        return None
    rows = [
        (
            f"{row['name']}, {row['subject']}",
            f"{row['ours']['us']:.1f}",
            f"{row['ours']['TFLOP/s']:.1f}",
            f"{row['torch']['us']:.1f}",
            f"{row['torch']['us'] / row['ours']['us']:.2f}",
            error_by_norm(row),
        )
        for row in document["rows"]
        if "us" in row.get("ours", {}) and "us" in row.get("torch", {})
    ]
    columns = (
        "layer in bfloat16",
        "us, kernwright",
        "TFLOP/s, kernwright",
        "us, torch (cuDNN)",
        "times as fast",
        "error by the norm",
    )
    return measured_table("Convolutions of models of speech", document, columns, rows)


def recurrences() -> str | None:
    document = load("recurrent")
    if document is None:
        return None
    rows = []
    for row in document["rows"]:
        times = row["device"]
        peers = [times.get(name) for name in ("torch", "torch tf32")]
        if not isinstance(times.get("ours"), float):
            continue
        rows.append(
            (
                f"{_network(row)}, {row['subject']}",
                f"{times['ours']:.1f}",
                *(f"{each:.1f}" if isinstance(each, float) else "" for each in peers),
                *(
                    f"{each / times['ours']:.2f}" if isinstance(each, float) else ""
                    for each in peers
                ),
                error_by_norm(row),
            )
        )
    columns = (
        "network in float32",
        "us, kernwright",
        "us, torch (cuDNN)",
        "us, torch with tf32",
        "times as fast as torch",
        "times as fast as with tf32",
        "error by the norm",
    )
    return measured_table("Recurrent networks of models of speech", document, columns, rows)


def _network(row: dict[str, Any]) -> str:
    cell = row["cell"].upper()
    return row["name"] if row["name"].startswith(cell) else f"{cell}, {row['name']}"
