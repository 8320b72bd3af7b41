"""The plan of memory before models are loaded: kernwright serve --check."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from kernwright.errors import OutOfMemory
from kernwright.llm._load import Plan
from kernwright.llm._size import MOST_ROWS, PAGE, SAME_ROWS, SHARE, EngineSize
from kernwright.llm._weights.memory import available_bytes

__all__ = ["checked"]

_GIB = 2**30


def checked(
    arguments: argparse.Namespace, plans: Mapping[str, Plan], kv_memory: int | str
) -> tuple[str, bool]:
    """The plan of memory as a text, and whether it fits. With --lazy and --idle-unload models need
    not be there at a time: then each fits by itself."""
    names = list(plans)
    alone = arguments.lazy and arguments.idle_unload is not None
    groups = [[name] for name in names] if alone else [names]
    found = [_group({name: plans[name] for name in group}, arguments, kv_memory)
             for group in groups]  # fmt: skip
    return "\n\n".join(text for text, _ in found), all(fits for _, fits in found)


def _group(
    plans: Mapping[str, Plan], arguments: argparse.Namespace, kv_memory: int | str
) -> tuple[str, bool]:
    """Of models in memory at a time."""
    device = next(iter(plans.values())).device
    free, total = available_bytes(device), device.memory_info().total
    weights = sum(plan.memory.device_bytes for plan in plans.values())
    left = max(free - weights, 0)
    given = int(SHARE * left / len(plans)) if kv_memory == "auto" else kv_memory
    usual = SAME_ROWS if arguments.deterministic else MOST_ROWS
    rows = usual if arguments.max_rows is None else arguments.max_rows
    taken, fits, parts = weights, True, []
    for name, plan in plans.items():
        context, token = plan.config.max_length, plan.token_bytes
        try:
            size = EngineSize.planned(context, token, rows, given, left, device)
            taken += size.pages * PAGE * token
            caches = _caches(size.pages, context, token)
        except OutOfMemory as error:
            fits, caches = False, f"none: {error}"
        parts.append(
            f"model    {name}: {plan.config.architecture} on {device.name}\n"
            f"weights  {_weights(plan)}\n"
            f"context  {context} tokens\n"
            f"caches   {caches}"
        )
    fits = fits and taken <= free
    verdict = f"{taken / _GIB:.3f} GiB of {free / _GIB:.3f} free, {total / _GIB:.3f} in all"
    parts.append(f"memory   {verdict}: {'it fits' if fits else 'it does not fit'}")
    return "\n\n".join(parts), fits


def _weights(plan: Plan) -> str:
    on_device = f"{plan.memory.device_bytes / _GIB:.3f} GiB"
    host = plan.memory.host_bytes
    return f"{on_device}, and {host / _GIB:.3f} GiB in the host's memory" if host else on_device


def _caches(pages: int, context: int, token: int) -> str:
    tokens = pages * PAGE
    return (
        f"{pages} pages, {tokens} tokens, {tokens / context:.1f} texts of the whole context, "
        f"{tokens * token / _GIB:.3f} GiB"
    )
