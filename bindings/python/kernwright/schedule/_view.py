"""A scheduler to look at: a panel of rich, a trace of Chrome's format, a page of HTML."""

from __future__ import annotations

import html
import json
import pathlib
from typing import Any

from kernwright import _core
from kernwright._core import _describe_bytes as size_text
from kernwright._support import html as pages
from kernwright._support import svg
from kernwright._support.files import told_of
from kernwright._support.words import printable, time_text

CLASSES = ("guaranteed", "burstable", "best_effort")
COUNTS = ("submitted", "waiting", "running", "done", "failed", "cancelled", "refused")
WIDTH, BAR, MOST_LANES = 960.0, 14, 300
STYLE = """
h2 { font-size: 1.15em; margin: 1.6em 0 .3em; } svg { display: block; width: 100%; height: auto; }
.queued { fill: var(--line); } .running { fill: var(--accent); } .failed { fill: var(--bad); }
.cancelled, .refused { fill: var(--warm); } text { fill: var(--ink); font-size: 11px; }
"""


def class_rows(stats: dict[str, Any]) -> list[list[str]]:
    return [
        [name, *(str(row[count]) for count in COUNTS), time_text(1000 * row["device"])]
        for name, row in stats["classes"].items()
    ]


def tenant_rows(stats: dict[str, Any]) -> list[list[str]]:
    return [
        [
            printable(name),
            "-" if row["share"] is None else f"{100 * row['share']:.4g} %",
            f"{100 * row['used']:.1f} %",
            f"{100 * row['used_10ms']:.1f} %",
            str(row["tasks"]),
        ]
        for name, row in stats["tenants"].items()
    ]


CLASS_HEADER = ["class", *COUNTS, "device time"]
TENANT_HEADER = ["account", "share", "last second", "last 10 ms", "tasks"]


def memory_text(stats: dict[str, Any]) -> str:
    memory, share = stats["memory"], stats["share"]
    return (
        f"{size_text(memory['reserved'])} of {size_text(memory['total'])} reserved, "
        f"{100 * share['reserved']:.4g} % of {100 * share['total']:.4g} % of the device's time"
    )


def panel(scheduler: Any) -> Any:
    """A renderable of rich: classes, accounts, memory and the queue."""
    from rich.console import Group
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    stats = scheduler.stats()

    def table(header: list[str], rows: list[list[str]]) -> Any:
        made = Table(box=None, pad_edge=False)
        for i, name in enumerate(header):
            made.add_column(name, justify="left" if i == 0 else "right")
        for row in rows:
            made.add_row(*map(Text, row))  # names are no markup
        return made

    waiting = [task for task in scheduler.tasks() if task["state"] == "queued"]
    lines = [task["explained"] for task in waiting[:8]]
    if len(waiting) > 8:
        lines.append(f"and {len(waiting) - 8} more")
    return Panel(
        Group(
            table(CLASS_HEADER, class_rows(stats)),
            memory_text(stats),
            table(TENANT_HEADER, tenant_rows(stats)),
            *(Text(printable(line)) for line in lines),
        ),
        title=f"scheduler of {scheduler.device}, policy {scheduler.policy}",
    )


def spans(task: dict[str, Any]) -> list[tuple[str, float, float, str]]:
    """(state, begin, end, reason) in seconds, of the states with a length."""
    history = task["history"]
    ends = [begin for _, begin, _ in history[1:]]
    rows = []
    for (state, begin, reason), end in zip(history, ends, strict=False):
        if state in ("queued", "running"):
            rows.append((state, begin, end, reason))
    last, begin, reason = history[-1]
    if rows and last in ("failed", "cancelled", "refused"):
        state, start, end, _ = rows[-1]
        rows[-1] = (last if state == "running" else state, start, end, reason)
    return rows


def events(scheduler: Any) -> dict[str, Any]:
    """Tasks as lanes, for Chrome's and Perfetto's viewers."""
    made: list[dict[str, Any]] = []
    for number, name in enumerate(CLASSES):
        made.append(
            {"ph": "M", "name": "process_name", "pid": number, "tid": 0, "args": {"name": name}}
        )
    for task in scheduler.tasks():
        lane = {"pid": CLASSES.index(task["qos"]), "tid": task["id"]}
        title = f"{printable(task['name']) or 'task'} ({task['id']})"
        made.append({"ph": "M", "name": "thread_name", **lane, "args": {"name": title}})
        for state, begin, end, reason in spans(task):
            made.append(
                {
                    "ph": "X", "name": state, "cat": task["qos"], **lane,
                    "ts": 1e6 * begin, "dur": 1e6 * (end - begin),
                    "args": {"reason": printable(reason), **task["stats"]},
                }
            )  # fmt: skip
    return {"traceEvents": made, "displayTimeUnit": "ms"}


def lanes(tasks: list[Any]) -> str:
    shown = [(task, rows) for task in tasks[-MOST_LANES:] if (rows := spans(task))]
    if not shown:
        return "<p>No task has begun.</p>"
    first = min(rows[0][1] for _, rows in shown)
    last = max(rows[-1][2] for _, rows in shown)
    scale = WIDTH / max(last - first, 1e-9)
    parts = []
    for lane, (task, rows) in enumerate(shown):
        for state, begin, end, reason in rows:
            about = (
                f"{printable(task['name']) or 'task'} ({task['id']}), {task['qos']}: {state} for "
            )
            about += time_text(1000 * (end - begin)) + (f"; {printable(reason)}" if reason else "")
            width = max((end - begin) * scale, 0.5)
            x = (begin - first) * scale
            parts.append(svg.box(x, lane * (BAR + 2), width, BAR, state, about))
    height = len(shown) * (BAR + 2)
    return svg.picture(parts, WIDTH, height, "tasks over time") + (
        f"<p>{time_text(1000 * (last - first))}; one line a task: waiting, then running</p>"
    )


def page(scheduler: Any) -> str:
    """One page without scripts or references."""
    stats, tasks = scheduler.stats(), scheduler.tasks()
    waiting = [task for task in tasks if task["state"] == "queued"]
    queue = "".join(f"<p>{html.escape(printable(task['explained']))}</p>" for task in waiting)
    body = (
        f"<p>policy {html.escape(scheduler.policy)}; {html.escape(memory_text(stats))}</p>"
        f"<h2>Classes</h2>{pages.table(CLASS_HEADER, class_rows(stats))}"
        f"<h2>Accounts of device time</h2>{pages.table(TENANT_HEADER, tenant_rows(stats))}"
        f"<h2>Queue</h2>{queue or '<p>Nothing waits.</p>'}<h2>Tasks</h2>{lanes(tasks)}"
    )
    return pages.page(f"Scheduler of {scheduler.device}", body, STYLE)


def save(scheduler: Any, path: Any) -> None:
    """Writes HTML for a name that ends in .html, else the trace as JSON."""
    target = pathlib.Path(_core._path(path, "Scheduler.save()"))
    is_page = target.suffix.lower() in (".html", ".htm")
    text = page(scheduler) if is_page else json.dumps(events(scheduler))
    with told_of(target, "written"):
        target.write_text(text, encoding="utf-8")
