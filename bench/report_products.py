"""Figures of products of matrices, grouped products and decoding, for report.py."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

from report_text import error_by_norm, fastest_peer, load, measured_table

TYPES = {
    "fp8": "float8, a scale of each operand",
    "fp8_fast": "float8, the same with fast accumulation",
    "fp8_rows": "float8, scales of rows",
    "fp8_blocks": "float8, scales of blocks",
    "int8": "int8",
    "tf32": "tf32",
    "float32": "float32",
}


def products() -> str | None:
    """Tables of bfloat16 and float16. Operands whose lines are not whole 16 bytes are ragged."""

    def kind(row: dict[str, Any]) -> str:
        ragged = any(extent % 8 for extent in row["shape"])
        return row["dtype"] + (", ragged" if ragged else "")

    documents = [load(name) for name in ("gemm", "gemm_float16")]
    tables = [
        product_table(f"Matrix products of {entry['rows'][0]['dtype']}", entry, kind)
        for entry in documents
        if entry
    ]
    return "\n".join(tables) or None


def typed_products() -> str | None:
    document = load("gemm_types")
    if document is None:
        return None
    return product_table("Matrix products of other types", document, lambda row: TYPES[row["type"]])


def product_table(
    title: str, document: dict[str, Any], kind: Callable[[dict[str, Any]], str]
) -> str:
    """A row for each product with a peer. DeepGEMM has columns if a row has it."""
    peers = {"torch": "torch (cuBLAS)"}
    if any("deep_gemm" in row for row in document["rows"]):
        peers["deep_gemm"] = "DeepGEMM"
    ratios: dict[str, list[float]] = {}
    rows = []
    for row in document["rows"]:
        if "TFLOP/s" not in row.get("torch", {}):
            continue
        cells = []
        for peer, called in peers.items():
            if peer not in row:
                cells += ["", ""]
                continue
            ratio = row[f"of {peer}"]
            ratios.setdefault(f"{kind(row)}, beside {called}", []).append(ratio)
            cells += [f"{row[peer]['TFLOP/s']:.0f}", f"{ratio:.2f}"]
        name = f"{'x'.join(map(str, row['shape']))} {row['layout']}, {kind(row)}"
        rows.append((name, f"{row['ours']['TFLOP/s']:.0f}", *cells, f"{row['error']:.1e}"))
    columns = ["", "TFLOP/s, kernwright"]
    for called in peers.values():
        columns += [f"TFLOP/s, {called}", "ratio"]
    where = "cold" if document.get("cold") else "warm"
    text = measured_table(f"{title}, {where} L2", document, [*columns, "error by the norm"], rows)
    means = [
        f"- {name}: geometric mean of the ratios {statistics.geometric_mean(entry):.3f}, "
        f"lowest {min(entry):.2f}"
        for name, entry in ratios.items()
    ]
    return "\n".join([text, *means, ""])


def grouped() -> str | None:
    document = load("grouped")
    if document is None:
        return None
    rows = []
    for row in document["rows"]:
        peer, ours = row["figures"].get("torch._grouped_mm", {}), row["figures"]["ours"]
        if "us" not in peer:
            continue
        name = f"{row['layer']}, {row['n']} x {row['k']}, {row['tokens']} tokens, {row['routing']}"
        times = f"{ours['us']:.0f}", f"{ours['TFLOP/s']:.0f}", f"{peer['us']:.0f}"
        deep = row["figures"].get("DeepGEMM", {}).get("us")
        beside = (f"{deep:.0f}", f"{deep / ours['us']:.2f}") if deep else ("", "")
        ratio = f"{row['of torch._grouped_mm']:.2f}"
        rows.append((name, *times, ratio, *beside, f"{row['error']:.1e}"))
    columns = (
        "layer, weights of an expert, tokens, routing",
        "us, kernwright",
        "TFLOP/s, kernwright",
        "us, torch._grouped_mm",
        "times as fast",
        "us, DeepGEMM",
        "times as fast",
        "error by the norm",
    )
    return measured_table("Products of groups of bfloat16 rows", document, columns, rows)


FAST = ", fast sums"  # accumulators of the tensor cores alone


def _microseconds(figures: dict[str, Any], title: str) -> str:
    us = figures.get(title, {}).get("us")
    return "" if us is None else f"{us:.0f}"


def _fastest_torch(figures: dict[str, Any], fast: bool) -> str:
    peers = {
        name: figure["us"]
        for name, figure in figures.items()
        if name.startswith("torch") and name.endswith(FAST) == fast and "us" in figure
    }
    if not peers:
        return ""
    best = min(peers, key=lambda name: peers[name])
    return f"{peers[best]:.0f} ({best.removeprefix('torch.').removesuffix(FAST)})"


def grouped_float8() -> str | None:
    document = load("grouped_float8")
    if document is None:
        return None
    rows, sources = [], set()
    for row in document["rows"]:
        entry, published = row["figures"], row.get("published", {})
        values = [
            f"{entry['ours']['us']:.0f}",
            f"{entry['ours']['TFLOP/s']:.0f}",
            f"{published['TFLOP/s']}" if published else "",
            _microseconds(entry, "DeepGEMM"),
            _microseconds(entry, "ours, scales of rows"),
            _fastest_torch(entry, fast=False),
            _microseconds(entry, "ours, scales of rows" + FAST),
            _fastest_torch(entry, fast=True),
            f"{entry['ours, bfloat16']['us']:.0f}",
            f"{row['error']:.1e}",
        ]
        name = f"{row['case']}: {row['groups']} groups, {row['rows']} rows, {row['n']} x {row['k']}"
        rows.append((name, " | ".join(values)))
        sources |= {published["source"]} if published else set()
    title = "Products of groups of float8 rows with scales of blocks"
    title += f" (published: {', '.join(sorted(sources))})" if sources else ""
    columns = (
        "groups, weights of one",
        "us | TFLOP/s | TFLOP/s, published | us, DeepGEMM | us, scales of rows | "
        "us, torch's fastest, scales of rows | us, the same with fast accumulation | "
        "us, torch's fastest with fast accumulation | us, bfloat16 | error by the norm",
    )
    return measured_table(title, document, columns, rows)


def decoding() -> str | None:
    document = load("decode_attention")
    if document is None:
        return None
    rows = []
    for row in document["rows"]:
        best = fastest_peer(row)
        if best is None:
            continue
        ours = row["ours"]
        rows.append(
            (
                f"{row['batch']} x {row['heads']} / {row['kv_heads']} heads, "
                f"{row['queries']} x {row['keys']}",
                f"{ours['us']:.1f}",
                f"{ours['TB/s']:.2f}",
                *(
                    f"{row[f'ours, {kind}']['us']:.1f}"
                    for kind in ("pages of 16", "float8", "int8")
                ),
                f"{best[1]:.1f} ({best[0]})",
                f"{best[1] / ours['us']:.2f}",
                error_by_norm(row),
            )
        )
    columns = (
        "batch x heads / heads of keys, queries x keys",
        "us, kernwright",
        "TB/s of the cache",
        "us, pages of 16",
        "us, float8 cache",
        "us, int8 cache",
        "us, torch's fastest backend",
        "times as fast",
        "error by the norm",
    )
    title = "Decoding with heads of 128 elements, cold L2"
    return measured_table(title, document, columns, rows)


def float8_attention() -> str | None:
    document = load("float8_attention")
    if document is None:
        return None
    rows = []
    for row in document["rows"]:
        ours = row["ours"]["TFLOP/s"]
        others = [row[f"ours, {kind}"]["TFLOP/s"] for kind in ("widened", "bfloat16")]
        best = fastest_peer(row, "TFLOP/s")
        rows.append(
            (
                f"{row['batch']} x {row['heads']} / {row['kv_heads']} heads of {row['dim']}, "
                f"{row['keys']}{', causal' if row['causal'] else ''}",
                f"{ours:.0f}",
                *(f"{rate:.0f}" for rate in others),
                f"{best[1]:.0f}" if best else "",
                error_by_norm(row),
            )
        )
    columns = (
        "batch x heads / heads of keys, tokens",
        "TFLOP/s, float8",
        "TFLOP/s, widened to bfloat16 first",
        "TFLOP/s, bfloat16 operands",
        "TFLOP/s, torch's cuDNN, bfloat16 operands",
        "error by the norm",
    )
    return measured_table("Attention of float8 operands", document, columns, rows)
