"""The winner: its values, its resources, its code, and lines to use it."""

from __future__ import annotations

import html
import json
import keyword
from collections.abc import Mapping
from typing import Any

from kernwright._support import html as _html
from kernwright._support.words import counted
from kernwright.tune._report._charts import value_text
from kernwright.tune._report._record import Record, TrialRow, number, table, text

_MOST_SOURCE = 200_000  # characters


def define(value: Any) -> str:
    """As the compiler gets it: a bool is 1 or 0."""
    return str(int(value)) if isinstance(value, bool) else text(value)


def pairs(values: Mapping[str, Any]) -> str:
    rows = "".join(
        f"<tr><th scope=row>{html.escape(str(name))}</th><td>{html.escape(text(value))}</td></tr>"
        for name, value in values.items()
        if text(value)
    )
    return f"<table class=pairs>{rows}</table>" if rows else ""


def _resources(trial: TrialRow) -> dict[str, str]:
    names = {
        "registers": ("registers a thread", ""),
        "shared_bytes": ("shared memory a block", " bytes"),
        "local_bytes": ("local memory a thread", " bytes"),
        "constant_bytes": ("constant memory", " bytes"),
    }
    found = {}
    for name, value in trial.resources.items():
        title, unit = names.get(name, (name, ""))
        amount = number(value)
        found[title] = f"{amount:,.0f}{unit}" if amount is not None else text(value)
    if trial.code:
        found["object code"] = trial.code
    return found


def _python(value: Any) -> str:
    """A literal of Python for a value from JSON."""
    return repr(value) if isinstance(value, (bool, int, float, str)) else repr(text(value))


def usage(record: Record, trial: TrialRow) -> str:
    """Python to run the winner: through the store, or with its defines."""
    values = ", ".join(f"{json.dumps(k)}: {_python(v)}" for k, v in trial.config.items())
    name = record.kernel if record.kernel.isidentifier() else "kernel"
    name = f"{name}_" if keyword.iskeyword(name) else name
    lines = [f"{name} = kw.kernel(source, defines={{{values}}})"]
    grid, block = (text(record.session.get(part)) for part in ("grid", "block"))
    if grid and block:
        lines[0] += f"  # grid {grid}, block {block}".replace("\n", " ")
    if record.store is not None:
        lines += [
            "# or, by the shape of each call:",
            f"fast = kw.kernel(source).tuned({record.store!r})",
        ]
    return "\n".join(lines)


def _listing(code: str) -> str:
    return f"<pre>{''.join(map(_html.source_row, code.splitlines()))}</pre>"


def _code(record: Record, trial: TrialRow, source: str | None) -> str:
    lines = [f"#define {name} {define(value)}" for name, value in trial.config.items()]
    known = source if source is not None else text(record.session.get("source_text"))
    if known:
        lines += ["", known[:_MOST_SOURCE]]
        if len(known) > _MOST_SOURCE:
            lines.append(f"... and {counted(len(known) - _MOST_SOURCE, 'more character')}")
    title = "Code, with its defines" if known else "Its defines"
    return f"<details><summary>{title}</summary>{_listing(chr(10).join(lines))}</details>"


def winner(record: Record, source: str | None) -> str:
    best = record.best
    if best is None:
        return "<p>No trial was correct: see the failures below.</p>"
    ties = record.ties
    said = ""
    if ties:
        others = ", ".join(str(trial.number) for trial in ties[:12])
        more = f" and {len(ties) - 12} more" if len(ties) > 12 else ""
        said = f"<p>Noise does not tell it from trials {others}{more}.</p>"
    return (
        f"<div class=pair><div>{pairs(best.config)}</div>"
        f"<div>{pairs(_resources(best))}</div></div>{said}"
        f"<h3>How to use it</h3>{_listing(usage(record, best))}"
        f"{_code(record, best, source)}"
    )


def cards(record: Record) -> str:
    """The main figures, as large numbers."""
    best, default = record.best, record.default_value
    shown: list[tuple[str, str, str]] = []
    if best is not None:
        spread = ""
        if best.interval:
            spread = " to ".join(value_text(record, v) for v in best.interval)
        shown.append((value_text(record, best.value), "best", spread))
        if default is not None and best.value:
            ratio = default / best.value
            shown.append((f"{ratio:.3g}x", "beside the default", value_text(record, default)))
    good = sum(trial.correct for trial in record.trials)
    failed = len(record.trials) - good
    shown.append((f"{len(record.trials):,}", "trials", f"{good:,} correct, {failed:,} failed"))
    if record.seconds is not None:
        why = text(record.result.get("reason"))
        name = "session" if record.sessions == 1 else f"{record.sessions} sessions"
        shown.append((f"{record.seconds:.3g} s", name, f"ended: {why}" if why else ""))
    noise = number(record.result.get("noise"))
    if noise is not None and not record.is_counted:
        count = counted(len(record.ties), "trial")
        shown.append((f"{100 * noise:.2g} %", "noise floor", f"{count} within it"))
    cells = "".join(
        f"<div class=card><b>{html.escape(big)}</b><span>{html.escape(name)}</span>"
        f"<small>{html.escape(small)}</small></div>"
        for big, name, small in shown
    )
    return f"<div class=cards>{cells}</div>"


def conditions(record: Record) -> str:
    """The measurement: its subject, its way, its place."""
    session = {**record.result, **record.session}
    device = session.get("device")
    shown: dict[str, Any] = {"kernel": record.kernel, "device": record.device}
    if isinstance(device, Mapping):
        facts = table(device)
        major, minor = number(facts.get("major")), number(facts.get("minor"))
        if major is not None and minor is not None:
            shown["compute capability"] = f"{major:.0f}.{minor:.0f}"
        shown["multiprocessors"] = facts.get("sm_count")
        shown["driver"] = facts.get("driver") or facts.get("driver_version")
    names = ("problem", "objective", "strategy", "budget", "policy", "seed", "default", "grid")
    shown.update((name, session.get(name)) for name in (*names, "block", "nvrtc", "started"))
    space = session.get("space")
    if isinstance(space, Mapping):
        listed = table(space.get("parameters"))
        shown["space"] = "; ".join(f"{name}: {text(values)}" for name, values in listed.items())
        shown["restrictions"] = space.get("restrictions")
    return pairs(shown)
