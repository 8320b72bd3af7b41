"""The plan of memory before models are loaded: kernwright serve --check."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Mapping

from kernwright.errors import OutOfMemory
from kernwright.llm._load import Plan
from kernwright.llm._size import MOST_ROWS, PAGE, SAME_ROWS, SHARE, EngineSize, host_bytes
from kernwright.llm._weights.available import available_bytes
from kernwright.serve.served import AdapterCard

__all__ = ["checked"]

_GIB = 2**30


def checked(
    arguments: argparse.Namespace, plans: Mapping[str, Plan], kv_memory: int | str,
    adapters: Mapping[str, AdapterCard],
) -> tuple[str, bool]:  # fmt: skip
    """The plan of memory as a text, and whether it fits. With --lazy and --idle-unload models need
    not be there at a time: then each fits by itself. Raises ModelError, StoreError for adapters
    whose files are wrong."""
    names = list(plans)
    slots = _adapter_bytes(arguments, plans, adapters)
    alone = arguments.lazy and arguments.idle_unload is not None
    groups = [[name] for name in names] if alone else [names]
    found = [_group({name: plans[name] for name in group}, arguments, kv_memory, slots)
             for group in groups]  # fmt: skip
    return "\n\n".join(text for text, _ in found), all(fits for _, fits in found)


def _adapter_bytes(
    arguments: argparse.Namespace, plans: Mapping[str, Plan], adapters: Mapping[str, AdapterCard]
) -> dict[str, int]:  # fmt: skip
    """Bytes of the device for adapters, by models. Where clients load them: what these may take."""
    made = {}
    for name, plan in plans.items():
        paths = [card.path for card in adapters.values() if card.parent == name]
        made[name] = plan.adapters.nbytes(paths)
        if arguments.allow_adapters is not None:
            made[name] = plan.adapters.most_bytes()
    return made


def _group(
    plans: Mapping[str, Plan], arguments: argparse.Namespace, kv_memory: int | str,
    slots: Mapping[str, int],
) -> tuple[str, bool]:  # fmt: skip
    """Of models in memory at a time. `slots`: bytes of their adapters."""
    device = next(iter(plans.values())).device
    free, total = available_bytes(device), device.memory_info().total
    weights = sum(plan.device_bytes for plan in plans.values())
    loaded = weights + sum(slots[name] for name in plans)
    left = max(free - loaded, 0)
    given = int(SHARE * left / len(plans)) if kv_memory == "auto" else kv_memory
    usual = SAME_ROWS if arguments.deterministic else MOST_ROWS
    rows = usual if arguments.max_rows is None else arguments.max_rows
    taken, fits, parts = loaded, True, []
    for name, plan in plans.items():
        context, token = plan.config.max_length, plan.cached_bytes
        try:
            size = EngineSize.planned(context, token, rows, given, left, device)
            taken += size.pages * PAGE * token
            caches = _caches(size.pages, context, token)
        except OutOfMemory as error:
            fits, caches = False, f"none: {error}"
        parts.append(
            f"model    {name}: {plan.config.architecture} on {device.name}\n"
            f"weights  {_weights(plan)}\n{_draft(plan)}"
            + _adapters(slots[name], arguments.allow_adapters is not None)
            + f"context  {context} tokens\n"
            f"caches   {caches}"
        )
    fits = fits and taken <= free
    host, host_fits = _host(plans, arguments.host_cache)
    verdict = f"{taken / _GIB:.3f} GiB of {free / _GIB:.3f} free, {total / _GIB:.3f} in all"
    parts.append(f"memory   {verdict}: {_verdict(fits)}{host}")
    return "\n\n".join(parts), fits and host_fits


def _verdict(fits: bool) -> str:
    return "it fits" if fits else "it does not fit"


def _weights(plan: Plan) -> str:
    on_device = f"{plan.memory.device_bytes / _GIB:.3f} GiB"
    host = plan.memory.host_bytes
    return f"{on_device}, and {host / _GIB:.3f} GiB in the host's memory" if host else on_device


def _adapters(taken: int, clients_load: bool) -> str:
    """The line of adapters; none where there can be none."""
    if not taken:
        return ""
    most = ", if clients load some of the highest rank for every layer" if clients_load else ""
    return f"adapters {taken / _GIB:.3f} GiB{most}\n"


def _host(plans: Mapping[str, Plan], host_cache: str | None) -> tuple[str, bool]:
    """The line of page-locked memory, empty without any, and whether the host has so much."""
    caches = (host_bytes(host_cache) or 0) * len(plans)
    taken = caches + sum(plan.memory.host_bytes for plan in plans.values())
    if not taken:
        return "", True
    free = _host_free()
    fits = taken <= free
    kept = f", {caches / _GIB:.3f} of them copies of pages" if caches else ""
    line = f"{taken / _GIB:.3f} GiB of {free / _GIB:.3f} free{kept}: {_verdict(fits)}"
    return f"\nhost     {line}", fits


def _host_free() -> int:
    """Bytes of the host that programs can still take."""
    with open("/proc/meminfo") as file:
        found = re.search(r"^MemAvailable:\s+(\d+) kB", file.read(), re.MULTILINE)
    return (
        1024 * int(found[1])
        if found
        else os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
    )


def _draft(plan: Plan) -> str:
    if plan.draft is None:
        return ""
    return f"draft    {plan.draft.config.architecture}, weights  {_weights(plan.draft)}\n"


def _caches(pages: int, context: int, token: int) -> str:
    tokens = pages * PAGE
    return (
        f"{pages} pages, {tokens} tokens, {tokens / context:.1f} texts of the whole context, "
        f"{tokens * token / _GIB:.3f} GiB"
    )
