"""Kernel.report(): where a kernel's time went and what it uses."""

from __future__ import annotations

import dataclasses
from typing import Any

from kernwright import _core
from kernwright._support import html as _html
from kernwright.errors import NvrtcNotFound


@dataclasses.dataclass(frozen=True)
class KernelReport:
    """What is known of a kernel on a device; str() of it is a table.

    `answered` is "memory", "disk", "pack", "compiled" or "object code"; `ready_ms` the time from
    the first request to a kernel that could be launched; `attempts`, `minimal` and `pch` ("made",
    "used", "not used") tell how this process compiled it, None where it did not. `phases` are
    milliseconds of a compile for this report alone, past all caches, and `headers` those that the
    source may include; both are empty, and the spills None, without such a compile. `block` is the
    suggested block size, `occupancy` how many such blocks fit a multiprocessor.
    """

    name: str
    device: str
    arch: str
    kind: str
    code_bytes: int
    nvrtc_version: str
    answered: str
    ready_ms: float
    compile_ms: float
    attempts: int | None
    minimal: bool | None
    pch: str | None
    registers: int
    shared_bytes: int
    local_bytes: int
    constant_bytes: int
    block: int
    occupancy: int
    phases: dict[str, float] = dataclasses.field(default_factory=dict)
    profile_ms: float | None = None
    headers: list[str] = dataclasses.field(default_factory=list)
    spill_store_bytes: int | None = None
    spill_load_bytes: int | None = None
    note: str = ""

    def _rows(self) -> list[tuple[str, str]]:
        rows = [
            ("kernel", f"{self.name} on {self.device}"),
            ("code", f"{self.kind} for {self.arch}, {self.code_bytes} bytes"),
            ("answered by", f"{self.answered}, ready in {self.ready_ms:.2f} ms"),
            ("compiled", f"NVRTC {self.nvrtc_version}, {self.compile_ms:.1f} ms{self._how()}"),
            *((f"  {name}", f"{ms:.2f} ms") for name, ms in self.phases.items()),
        ]
        if self.profile_ms is not None:
            rows.append(("  whole compile", f"{self.profile_ms:.1f} ms, for this report"))
            rows.append(("headers", ", ".join(self.headers) or "none"))
        spills = f"local {self.local_bytes} bytes"
        if self.spill_store_bytes is not None:
            spills += f", spills {self.spill_store_bytes} out, {self.spill_load_bytes} in"
        rows += [
            ("registers", f"{self.registers} a thread, {spills}"),
            ("shared", f"{self.shared_bytes} bytes a block, constant {self.constant_bytes}"),
            ("occupancy", f"{self.occupancy} blocks of {self.block} threads a multiprocessor"),
        ]
        if self.note:
            rows.append(("note", self.note))
        return rows

    def __str__(self) -> str:
        rows = self._rows()
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:<{width}}  {text}" for name, text in rows)

    def _repr_html_(self) -> str:
        return _html.box(f"Kernel {self.name}", dict(self._rows()[1:]))

    def _how(self) -> str:
        if self.attempts is None:
            return " (by another process)" if self.answered != "object code" else ""
        parts = [f"precompiled header {self.pch}"]
        if self.minimal:
            parts.append("--minimal")
        if self.attempts > 1:
            parts.append(f"{self.attempts} attempts")
        return f" ({', '.join(parts)})"


def report(kernel: _core.Kernel, device: Any = None, phases: bool = True) -> KernelReport:
    """Kernel.report()."""
    facts = kernel._facts(device)
    if phases:
        try:
            profile = kernel._profile(device)
        except NvrtcNotFound:
            facts["note"] = "no NVRTC is installed: its phases cannot be measured"
        else:
            facts.update(profile or {"note": "object code has no source to be compiled"})
    return KernelReport(**facts)
