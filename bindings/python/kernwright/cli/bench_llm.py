"""kernwright bench llm: how fast a language model reads prompts and writes."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

from kernwright.cli import UsageError
from kernwright.cli._models import add_draft_arguments, add_model_arguments, draft_of, loaded

_REPEATS, _STEPS, _CONTEXT = 5, 64, 1024


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model_arguments(parser)
    parser.add_argument(
        "-p", "--prompts", default="512,2048", metavar="N,N",
        help="rows pp: tokens of a prompt, to its first token (default 512,2048; none)",
    )  # fmt: skip
    parser.add_argument(
        "-n", "--generate", default="128", metavar="N,N",
        help="rows tg: tokens written behind one token (default 128; none)",
    )  # fmt: skip
    parser.add_argument(
        "-b", "--batch-sizes", default="1,8,64,256", metavar="N,N",
        help="rows step: texts that are written at a time (default 1,8,64,256; none)",
    )  # fmt: skip
    parser.add_argument(
        "--context", type=int, default=_CONTEXT, metavar="N",
        help=f"tokens before each step of the rows step (default {_CONTEXT})",
    )  # fmt: skip
    parser.add_argument(
        "--steps", type=int, default=_STEPS, metavar="N",
        help=f"steps of a row step (default {_STEPS})",
    )  # fmt: skip
    parser.add_argument(
        "-r", "--repeats", type=int, default=_REPEATS, metavar="N",
        help=f"times that a row pp or tg is measured (default {_REPEATS})",
    )  # fmt: skip
    add_draft_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON document only")


class _Row(NamedTuple):
    name: str
    batch: int
    length: int  # tokens of a text at the end
    measure: Callable[[], dict[str, Any]]


def run(arguments: argparse.Namespace) -> int:
    counts = [_counts(arguments, each) for each in ("prompts", "generate", "batch_sizes")]
    for name in ("context", "steps", "repeats"):
        if getattr(arguments, name) < 1:
            raise UsageError(f"--{name} is 1 at least, got {getattr(arguments, name)}")
    draft = draft_of(arguments)
    model = loaded(arguments)
    document: dict[str, Any] = {"kind": "bench llm", "v": 1, **_facts(model, arguments)}
    rows = document["rows"] = []
    if not arguments.json:
        print(_heading(document))
    for row in _rows(model, arguments, draft, *counts):
        rows.append(_measured(model, row))
        if not arguments.json:
            print(_line(rows[-1]), flush=True)
    if arguments.json:
        print(json.dumps(document, indent=1))
    if model.device.is_simulated:
        print("simulated device: its times tell nothing of a GPU", file=sys.stderr)
    return 1 if any(row["status"] == "error" for row in rows) else 0


def _counts(arguments: argparse.Namespace, name: str) -> list[int]:
    """The numbers of A,B,C. Raises UsageError."""
    text = getattr(arguments, name)
    if text == "none":
        return []
    try:
        found = [int(part) for part in text.split(",")]
    except ValueError:
        found = [0]
    if min(found) < 1:
        flag = name.replace("_", "-")
        raise UsageError(f"--{flag} {text!r:.60}: numbers from 1 on with commas, or none")
    return found


def _rows(
    model: Any, arguments: argparse.Namespace, draft: Any, prompts: list[int], written: list[int],
    batches: list[int],
) -> Iterator[_Row]:  # fmt: skip
    from kernwright.llm import _measuring

    repeats, steps, context = arguments.repeats, arguments.steps, arguments.context
    for n in prompts:
        yield _Row(f"pp{n}", 1, n + 1, partial(_measuring.prompt, model, n, repeats))
    for n in written:
        yield _Row(f"tg{n}", 1, n + 2, partial(_measuring.generation, model, n, repeats))
    for n in written if draft is not None else ():
        yield _Row(f"draft{n}", 1, 32 + n, partial(_measuring.drafting, model, draft, n, repeats))
    # A row begins with a prompt of context - steps tokens and ends after at most 4 * steps.
    context = max(context, steps + 1)
    for n in batches:
        yield _Row(
            f"step@{context}", n, context + 4 * steps,
            partial(_measuring.decoding, model, n, context, steps),
        )  # fmt: skip


def _measured(model: Any, row: _Row) -> dict[str, Any]:
    import kernwright as kw

    found: dict[str, Any] = {"test": row.name, "batch": row.batch}
    if row.length > model.config.max_length:
        why = f"{row.length} tokens, and the context holds {model.config.max_length}"
        return {**found, "status": "skipped", "why": why}
    try:
        return {**found, "status": "ok", **row.measure()}
    except kw.Error as error:  # other rows may fit
        return {**found, "status": "error", "why": f"{type(error).__name__}: {error}"}


def _facts(model: Any, arguments: argparse.Namespace) -> dict[str, Any]:
    from kernwright import __version__
    from kernwright.llm import _measuring

    numbers, size = _measuring.size(model)
    device = {"name": model.device.name, "is_simulated": model.device.is_simulated}
    facts = {
        "path": arguments.model or arguments.random, "random": arguments.random is not None,
        "architecture": model.config.architecture, "parameters": numbers, "bytes": size,
        "dtype": arguments.dtype or model.config.dtype, "quantize": arguments.quantize,
        "kv_dtype": model.cache_format.dtype, "max_length": model.config.max_length,
    }  # fmt: skip
    return {"version": __version__, "device": device, "model": facts}


def _heading(document: dict[str, Any]) -> str:
    model = document["model"]
    few = f", {model['quantize']}" if model["quantize"] else ""
    return (
        f"{model['path']}: {model['architecture']}, {model['parameters'] / 1e6:,.1f} M parameters, "
        f"{model['bytes'] / 2**20:,.1f} MiB, {model['dtype']}{few}, caches {model['kv_dtype']}, on "
        f"{document['device']['name']}\n"
        f"{'test':<12} {'batch':>5} {'ms':>10} {'quartiles':>19} {'tokens/s':>12}"
    )


def _line(row: dict[str, Any]) -> str:
    begin = f"{row['test']:<12} {row['batch']:>5}"
    if row["status"] != "ok":
        return f"{begin} {row['status']}: {row['why']}"
    between = f"{row['ms_low']:.3f}-{row['ms_high']:.3f}"
    return f"{begin} {row['ms']:>10.3f} {between:>19} {row['tokens_per_second']:>12,.1f}"
