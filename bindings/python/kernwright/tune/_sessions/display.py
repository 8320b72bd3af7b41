"""How sessions, trials and results look in a notebook."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kernwright._support.html import box
from kernwright._support.words import pairs_text, time_text
from kernwright.tune._sessions.panel_state import value_text


def _interval(value: Any) -> str:
    try:
        low, high = value
        return f"{low:.4g} to {high:.4g} ms"
    except (TypeError, ValueError):
        return ""


def trial_html(trial: Any) -> str:
    """Of an object with number, config, status and what a Trial else has."""
    resources = getattr(trial, "resources", None) or {}
    resources = getattr(resources, "_asdict", lambda: resources)()
    timed = getattr(trial, "time", None) is not None
    rows = {
        "status": trial.status,
        "time" if timed else "score": value_text(trial) if trial.status == "correct" else "",
        "interval": _interval(getattr(trial, "interval", None)),
        "config": pairs_text(trial.config),
        "error": str(getattr(trial, "error", None) or "").strip()[:2000],
        "resources": pairs_text(resources if isinstance(resources, Mapping) else {}),
    }
    return box(f"Trial {trial.number}", rows)


def best_html(best: Any) -> str:
    """Of a result with config, median, interval and ties."""
    ties = len(getattr(best, "ties", None) or ())
    median, score = getattr(best, "median", None), getattr(best, "score", None)
    rows = {
        "config": pairs_text(best.config),
        "median": time_text(median) if isinstance(median, (int, float)) else "",
        "score": "" if median is not None or score is None else f"{score:,.6g}",
        "interval": _interval(getattr(best, "interval", None)),
        "ties": f"{ties} that noise does not tell from it" if ties > 1 else "",
    }
    return box("Best configuration", rows)


def session_html(rows: Any, title: str) -> str:
    """Of a session's rows: its figures, and the best so far as a picture."""
    from kernwright.errors import InvalidArgument
    from kernwright.tune._report import _charts
    from kernwright.tune._report._read import read_record
    from kernwright.tune._report._record import text

    try:
        record = read_record(rows)
    except InvalidArgument:
        return box(f"Tuning session of {title}", {"trials": "none yet"})
    failed = sum(not trial.correct for trial in record.trials)
    best = record.best
    shown = {
        "best": _charts.value_text(record, best.value) if best else "none yet",
        "config": pairs_text(best.config) if best else "",
        "default": _charts.value_text(record, value) if (value := record.default_value) else "",
        "trials": f"{len(record.trials)}, {failed} failed",
        "device": record.device,
        "ended": text(record.result.get("reason")),
    }
    picture = _charts.progress(record, False)
    style = (
        "<style>.kernwright-tune svg text{font:12px system-ui,sans-serif;fill:#777}"
        ".kernwright-tune .grid,.kernwright-tune .axis{stroke:#8886;stroke-width:.7}"
        ".kernwright-tune polyline.best{fill:none;stroke:#2f7ed8;stroke-width:2}"
        ".kernwright-tune .trial{fill:#8887}.kernwright-tune .mark{fill:#2f7ed8}"
        ".kernwright-tune figure{margin:0;width:440px;max-width:100%}"
        ".kernwright-tune figcaption{opacity:.7}</style>"
    )
    more = f"{style}<div class=kernwright-tune>{picture}</div>" if picture else ""
    return box(f"Tuning session of {record.kernel}", shown, more)
