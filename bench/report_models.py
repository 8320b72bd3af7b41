"""Figures of language models, for report.py."""

from __future__ import annotations

import json
import re
from typing import Any

from report_text import HERE, load, measured_table

KINDS = ("products", "attention", "others", "gaps")
# Kernels of step_profile.py.
PRODUCTS = re.compile(r"gemm|gemv|skinny|packed|finish_product|add_splits")
ATTENTION = re.compile(r"attention|combine_splits")
MODELS = {
    "8b": "Llama-3.1-8B", "1b": "Llama-3.2-1B", "30b-a3b": "Qwen3-30B-A3B", "mimo": "MiMo-7B",
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
            if isinstance(found, dict) and "tokens_per_second" in found:
                rows.append(_row(name, part, found, peers.get("figures", {}).get(name, {})))
    columns = ("", "ours", "tokens a second", "vLLM", "vLLM / ours")
    title = "Language models of random weights, 1024 tokens of context"
    note = f"\nvLLM: {peers['source']}.\n" if peers else ""
    return measured_table(title, document, columns, rows) + note


def loads_and_starts() -> str | None:
    """Loading, the first token of a process, and steps of deterministic=True."""
    document = load("llm")
    if document is None:
        return None
    rows = []
    for name, parts in document["models"].items():
        title = _title(name)
        if "gb_per_second" in (found := parts.get("load", {})):
            label = f"{title}: load, files in the page cache"
            rows.append((label, f"{found['seconds']:.2f} s", f"{found['gb_per_second']:.1f} GB/s"))
        for found in parts.get("start", []):
            label = f"{title}: process start to first token, {found['kernels']} kernels"
            listed_parts = ", ".join(
                f"{part} {found[f'{part}_seconds']:.2f}" for part in ("import", "load", "token")
            )
            rows.append((label, f"{found['seconds']:.2f} s", listed_parts))
        for found in parts.get("deterministic", []):
            label = f"{title}: deterministic=True, a step of {found['rows']} sequences"
            plain = f"{found['plain_ms']:.2f} ms without"
            rows.append((label, f"{found['ms']:.2f} ms", plain))
    title = "Loading, starting, determinism"
    return measured_table(title, document, ("", "ours", "of it, or beside it"), rows)


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
    if kind == "draft":
        ways = {"draft": "n-grams", "draft model": "a draft model", "draft jacobi": "guesses kept",
                "draft eagle3": "an EAGLE-3 head", "draft mtp": "an MTP layer"}  # fmt: skip
        way = ways[part]
        label = f"{_title(name)}: a text that repeats itself, drafts by {way}"
        plain = f"{found['plain_ms']:.2f} ms without"
        times = f"{found['plain_ms'] / found['ms']:.2f}"
        return label, f"{found['ms']:.2f} ms a token", f"{rate:.0f}", plain, times
    if kind == "decode":
        label, ms = f"{_title(name)}: a step of {number} sequences", found["step_ms"]
    else:
        label, ms = f"{_title(name)}: a prompt of {number} tokens, first token", found["ms"]
    shown = f"{theirs:.2f} ms" if theirs else ""
    return label, f"{ms:.2f} ms", f"{rate:.0f}", shown, f"{theirs / ms:.2f}" if theirs else ""


def step_profile() -> str | None:
    """Where the time of steps goes."""
    document = load("step_profile")
    if document is None:
        return None
    rows = [
        (
            f"{_title(name)}: {part}",
            *(_us(found["shares_us"][kind]) for kind in KINDS),
            _most(found),
        )
        for name, parts in document["models"].items()
        for part, found in parts.items()
    ]
    columns = ("us of a step", "products", "attention", "others", "gaps", "most of the others")
    return measured_table("Steps kernel by kernel", document, columns, rows)


def _us(number: float) -> str:
    return f"{number:.0f}"


def _most(found: dict[str, Any]) -> str:
    """The kernels beside products and attention that take longest."""
    others = [
        f"{name} {row['own_us']:.0f}"
        for name, row in found["kernels"].items()
        if not PRODUCTS.search(name) and not ATTENTION.search(name)
    ]
    return ", ".join(others[:3])


def served() -> str | None:
    """The server: start, first tokens, a shared prefix, load."""
    document = load("serve")
    if document is None:
        return None
    rows = []
    if found := document.get("ready"):
        rows.append(("from the start of the process to ready", f"{found['warm_seconds']:.2f} s"))
    if found := document.get("http"):
        rows.append(("HTTP at one request, beside the engine alone", f"{found['more_ms']:.2f} ms"))
    for length, found in document.get("first", {}).items():
        rows.append((f"first token of {length} new ones", f"{found['median']:.1f} ms"))
    if found := document.get("prefix"):
        together = (
            f"{found['together_ms']['median']:.1f} ms, alone {found['alone_ms']['median']:.1f}"
        )
        label = f"first token of {found['requests']} requests that share {found['tokens']} tokens"
        rate = f"hit rate {found['hit_rate']:.0%}"
        rows.append((label, f"{together} ms, the fastest of several turns; {rate}"))
    for count, found in document.get("load", {}).items():
        share = document.get("share_of_bare", {}).get(count)
        beside = f"; {share:.1%} of the engine in a program" if share else ""
        label = (
            f"{document['prompt']} tokens in, {document['tokens']} out, {count} requests in flight"
        )
        rows.append((label, f"{found['tokens_per_second']:.0f} tokens/s{beside}"))
    title = f"kernwright serve, {_title(document['model'])} of random weights, over HTTP"
    return measured_table(title, document, ("", "measured"), rows)


def endurance() -> str | None:
    """The server for a long time under all that goes wrong."""
    document = load("serve_endurance")
    if document is None:
        return None
    clients, reasons = document["clients"], document["reasons"]
    growth = max(document["growth_bytes"], default=0)
    names = ("disconnects", "killed clients", "damaged bodies", "over the limit of the queue",
             "faults", "losses of the device")  # fmt: skip
    labels = {"faults": "faults of the driver's calls"}
    rows = [("time", f"{document['seconds'] / 60:.0f} min"), ("rounds", f"{document['rounds']}")]
    rows += [(labels.get(name, name), f"{clients.get(name, 0)}") for name in names]
    rows += [
        ("a neighbour's requests with its text, with an error",
         f"{clients['neighbour got its text']}, {clients.get('neighbour got an error', 0)}"),
        ("requests with a logged reason", f"{sum(reasons.values())}"),
        ("growth of the memory within the life of a server, at most", f"{growth / 2**20:.1f} MiB"),
    ]  # fmt: skip
    return measured_table("kernwright serve while all goes wrong at once", document,
                          ("", "counted"), rows)  # fmt: skip
