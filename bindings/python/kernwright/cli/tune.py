"""kernwright tune: runs the tuning session of a file."""

from __future__ import annotations

import argparse
import collections
import inspect
import json
import math
import re
import runpy
import sys
from typing import Any

from kernwright._support.files import imports_beside
from kernwright._support.words import counted, headline, pairs_text, printable
from kernwright.cli import UsageError
from kernwright.cli._files import complete_files, existing, running, writable

_UNITS = {"s": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    spec = parser.add_argument(
        "spec",
        metavar="SPEC",
        help="a .json file (kernel_file, parameters, restrictions, problem, arguments, grid, "
        "block, ...; or a T1 file), or a .py file that defines `session`, a function that makes "
        "one, or kernel, space, args, grid and block as variables",
    )
    parser.add_argument(
        "--budget",
        metavar="BUDGET",
        help="60s, 5min, 200 (evaluations), gpu=20s, target=0.5; several with commas",
    )
    parser.add_argument("--strategy", help="portfolio, random, ...: one of kw.tune.strategies()")
    parser.add_argument("--seed", type=int, help="the same seed asks the same configurations")
    store = parser.add_argument("--store", metavar="FILE", help="keep trials and result there")
    report = parser.add_argument("--report", metavar="HTML", help="write the report to this file")
    parser.add_argument("--json", action="store_true", help="print one JSON document only")
    for argument in (spec, store, report):
        complete_files(argument)


def budget(text: str) -> dict[str, float | int]:
    """The limits of --budget. Throws UsageError."""
    found: dict[str, float | int] = {}
    for part in text.split(","):
        match = re.fullmatch(r"\s*(?:(gpu|target)=)?([\d.]+(?:e-?\d+)?)(s|min|m|h)?\s*", part)
        try:
            value = float(match[2]) if match else math.nan
        except ValueError:
            value = math.nan
        if match is None or not value > 0 or (match[1] == "target" and match[3]):
            raise UsageError(
                f"--budget {text!r}: {part.strip()!r} is none; write 60s, 5min, 200 (evaluations), "
                "gpu=20s or target=0.5"
            )
        name = {"gpu": "gpu_seconds", "target": "target"}.get(match[1] or "", "")
        name = name or ("seconds" if match[3] else "evaluations")
        if name in found:
            raise UsageError(f"--budget {text!r} has two limits of {name.replace('_', ' ')}")
        if name == "evaluations" and value != int(value):
            raise UsageError(f"--budget {text!r}: {match[2]} evaluations are no whole number")
        scaled = value * _UNITS.get(match[3] or "", 1.0)
        found[name] = int(value) if name == "evaluations" else scaled
    return found


def overrides(arguments: argparse.Namespace) -> dict[str, Any]:
    """The command line's part of the session."""
    given = {
        "budget": budget(arguments.budget) if arguments.budget is not None else None,
        "strategy": arguments.strategy,
        "seed": arguments.seed,
        "store": arguments.store,
    }
    return {name: value for name, value in given.items() if value is not None}


def _called(make: Any, given: dict[str, Any], path: str) -> Any:
    """The result of a function of the file, with the given options."""
    try:
        signature = inspect.signature(make)
        signature.bind(**given)
    except TypeError as error:
        names = ", ".join(f"--{name}" for name in given)
        raise UsageError(
            f"{path!r}: session() does not take {names or 'no argument'}: {error}; write def "
            "session(**options) and give them to kw.tune.Session"
        ) from None
    with running(path, "session"):
        return make(**given)


def _variables(path: str) -> dict[str, Any]:
    """Those of a Python file; it is run and may import the files beside it."""
    with running(path, "session"), imports_beside(path):
        return runpy.run_path(path, run_name="kernwright_tune_spec")


def make_session(path: str, given: dict[str, Any]) -> Any:
    """The session of a file, with these options in place of its own. Throws UsageError."""
    from kernwright import tune
    from kernwright.errors import ArgumentError, InvalidArgument, NameNotFound
    from kernwright.tune._spec import read_json, session_of

    if not path.endswith((".json", ".py")):
        raise UsageError(f"{path!r} is neither a .json nor a .py file")
    found = read_json(path) if path.endswith(".json") else session_of(_variables(path), path)
    if isinstance(found, dict):
        try:
            with running(path, "session", all_of_it=False):
                return tune.Session(**{**found, **given})
        except (ArgumentError, InvalidArgument, NameNotFound) as error:
            raise UsageError(f"{path!r}: {error}") from error
    if hasattr(found, "run"):
        if given:
            names = ", ".join(f"--{name}" for name in given)
            raise UsageError(
                f"{path!r} has made its session already: {names} cannot change it; write def "
                "session(**options) and give them to kw.tune.Session"
            )
        return found
    if not callable(found):
        raise UsageError(f"{path!r}: session is a kw.tune.Session or a function that makes one")
    made = _called(found, given, path)
    if not hasattr(made, "run"):
        raise UsageError(f"{path!r}: session() made a {type(made).__name__}, no kw.tune.Session")
    return made


def summary(session: Any, best: Any, arguments: argparse.Namespace) -> dict[str, Any]:
    """The output of --json."""
    statuses = collections.Counter(str(trial.status) for trial in session.trials)
    result: dict[str, Any] = {
        "config": dict(best.config) if best is not None else None,
        "median": best.median if best is not None else None,
        "interval": list(best.interval or ()) if best is not None else [],
        "score": getattr(best, "score", None),
        "default": getattr(best, "default", None),
        "ties": [dict(getattr(tie, "config", tie)) for tie in getattr(best, "ties", None) or ()],
        "reason": getattr(session, "reason", None),
        "trials": sum(statuses.values()),
        "statuses": dict(statuses),
        "store": arguments.store,
        "report": arguments.report,
    }
    return result


def print_summary(result: dict[str, Any], session: Any) -> None:
    statuses = ", ".join(f"{count} {status}" for status, count in result["statuses"].items())
    rows = [("trials", f"{result['trials']}: {statuses}" if statuses else "none")]
    if result["config"] is None:
        rows.insert(0, ("best", "none: no trial was correct"))
        failed = [(str(t.status), headline(str(t.error))) for t in session.trials if t.error]
        rows += list(dict.fromkeys(failed))[:3]
    else:
        rows.insert(0, ("best", pairs_text(result["config"])))
        if isinstance(result["median"], (int, float)):
            spread = " to ".join(f"{v:.5g}" for v in result["interval"])
            median = f"{result['median']:.5g} ms"
            rows.insert(1, ("median", f"{median} ({spread})" if spread else median))
        elif isinstance(result["score"], (int, float)):
            rows.insert(1, ("score", f"{result['score']:,.6g}"))
        if len(result["ties"]) > 1:
            count = counted(len(result["ties"]), "configuration")
            rows.append(("ties", f"{count} that noise does not tell from it"))
    rows += [(name, result[name]) for name in ("store", "report") if result[name]]
    width = max(len(name) for name, _ in rows)
    for name, text in rows:
        print(printable(f"{name:<{width}}  {text}"))


def run(arguments: argparse.Namespace) -> int:
    existing(arguments.spec)
    for path in (arguments.report, arguments.store):
        if path is not None:
            writable(path)
    given = overrides(arguments)
    session = make_session(arguments.spec, given)
    interrupted = False
    try:
        with running(arguments.spec, "session", all_of_it=False):
            best = session.run(progress="live")
    except KeyboardInterrupt:  # what was found until then is told all the same
        interrupted, best = True, session.best
    if arguments.report is not None and session.trials:
        session.report(arguments.report)
    result = summary(session, best, arguments)
    if arguments.json:
        print(json.dumps(result, indent=1, default=str))
    else:
        print_summary(result, session)
        if best is None:
            print("no configuration was correct", file=sys.stderr)
    if interrupted:
        print("interrupted", file=sys.stderr)
    return 0 if best is not None and not interrupted else 1
