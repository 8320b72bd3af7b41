"""kernwright bench: times benchmarks of files, or our operations, beside earlier runs."""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import re
import sys
from collections.abc import Sequence
from typing import Any

from kernwright._support.files import imports_beside, write_whole
from kernwright._support.words import counted
from kernwright.cli import UsageError, _bench_table
from kernwright.cli._files import complete_files, existing, read_text, running, writable

FOLDER = pathlib.Path(".kernwright") / "bench"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    files = parser.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help="Python files with functions that kw.bench.benchmark decorates, or folders of such "
        "bench_*.py files; without any: the operations of this package beside peers",
    )
    complete_files(files)
    parser.add_argument(
        "-k",
        "--only",
        "--ops",
        dest="k",
        metavar="TEXTS",
        help="only what has one of these in its name; of operations also a group's name",
    )
    parser.add_argument("--list", action="store_true", help="show what there is, run nothing")
    parser.add_argument(
        "--quick", action="store_true", help="few samples, of one point of each one alone"
    )
    parser.add_argument(
        "--axis",
        action="append",
        default=[],
        metavar="NAME=V1,V2",
        help="these values of an axis in place of the benchmarks' own; repeatable",
    )
    parser.add_argument("--sizes", metavar="N1,N2", help="elements, as 4096 or 2^12; the axis n")
    parser.add_argument("--dtypes", metavar="T1,T2", help="element types; the axis dtype")
    parser.add_argument(
        "--save", metavar="NAME", help=f"keep the run in {FOLDER}/NAME.json, or in a .json file"
    )
    parser.add_argument("--compare", metavar="NAME", help="show it beside a run that was saved")
    parser.add_argument(
        "--fail-on-regression",
        type=float,
        metavar="PERCENT",
        help="exit 1 when something is slower than in --compare by more than that, beyond noise",
    )
    _bench_table.add_arguments(parser)
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--markdown", action="store_true", help="print a table in Markdown")
    output.add_argument("--json", action="store_true", help="print one JSON document only")


def saved_path(name: str) -> pathlib.Path:
    """Where a run of that name is. Throws UsageError."""
    if name.endswith(".json"):
        return pathlib.Path(name)
    if not re.fullmatch(r"[\w.+-]+", name) or set(name) <= {"."}:
        raise UsageError(
            f"{name!r} is no name of a run: letters, digits and ._+-, or a path that ends in .json"
        )
    return FOLDER / f"{name}.json"


def load_run(name: str) -> dict[str, Any]:
    """A run that was saved. Throws UsageError."""
    from kernwright.bench._run import VERSION

    path = saved_path(name)
    if not path.exists() and path.parent == FOLDER:
        known = sorted(p.stem for p in FOLDER.glob("*.json"))
        raise UsageError(
            f"there is no run {name!r} in {FOLDER}; there is: {', '.join(known) or 'none'}"
        )
    try:
        found = json.loads(read_text(str(path)))
    except ValueError as error:
        raise UsageError(f"{os.fspath(path)!r} is no run of benchmarks: {error}") from error
    if not isinstance(found, dict) or found.get("kind") != "bench":
        raise UsageError(f"{os.fspath(path)!r} is no run of benchmarks")
    if found.get("v") != VERSION:
        raise UsageError(f"{os.fspath(path)!r} has version {found.get('v')}, this reads {VERSION}")
    return found


def save_run(document: dict[str, Any], path: pathlib.Path) -> None:
    """Replaces what is there only by a whole file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(document, indent=1) + "\n")


def axis_values(text: str) -> list[Any]:
    """Whole numbers, numbers, else texts."""
    found: list[Any] = []
    for part in text.split(","):
        word = part.strip()
        if not word:
            raise UsageError(f"{text!r} has an empty value")
        for kind in (int, float, str):
            try:
                found.append(kind(word))
                break
            except ValueError:
                continue
    return found


def chosen_axes(arguments: argparse.Namespace) -> dict[str, list[Any]]:
    texts = list(arguments.axis)
    if arguments.sizes is not None:
        sizes = _bench_table.texts(arguments.sizes, "--sizes") or []
        exact = [str(_bench_table.size_of(size)) if "^" in size else size for size in sizes]
        texts.append("n=" + ",".join(exact))
    texts += [f"dtype={arguments.dtypes}"] if arguments.dtypes is not None else []
    found: dict[str, list[Any]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        if not equals or not name.isidentifier():
            raise UsageError(f"--axis {text!r}: write NAME=VALUE,VALUE")
        if name in found:
            raise UsageError(f"axis {name} is given twice")
        found[name] = axis_values(values)
    return found


def files_of(paths: Sequence[str]) -> list[str]:
    found: list[str] = []
    for path in paths:
        if os.path.isdir(path):
            below = sorted(str(p) for p in pathlib.Path(path).rglob("bench_*.py"))
            if not below:
                raise UsageError(f"there is no bench_*.py file in {path!r}")
            found += below
        else:
            found.append(existing(path))
    return list(dict.fromkeys(found))


def load_file(path: str) -> list[Any]:
    """The benchmarks of a file, which is run; it may import what lies beside it."""
    import runpy

    from kernwright.bench import Benchmark

    with running(path, "benchmark"), imports_beside(path):
        names = runpy.run_path(path, run_name="kernwright_bench")
    found = [value for value in names.values() if isinstance(value, Benchmark)]
    if not found:
        raise UsageError(f"{path!r} has no benchmark: decorate functions with kw.bench.benchmark")
    return list({id(bench): bench for bench in found}.values())


def chosen_benchmarks(arguments: argparse.Namespace) -> list[Any]:
    found = [bench for path in files_of(arguments.files) for bench in load_file(path)]
    texts = _bench_table.texts(arguments.k, "--only")
    if texts is not None:
        kept = [bench for bench in found if any(text in bench.name for text in texts)]
        if not kept:
            names = ", ".join(bench.name for bench in found)
            raise UsageError(f"no benchmark has {arguments.k!r} in its name; there is: {names}")
        found = kept
    return found


def check_use(arguments: argparse.Namespace) -> None:
    _bench_table.check_use(arguments)
    percent = arguments.fail_on_regression
    if percent is not None and arguments.compare is None:
        raise UsageError("--fail-on-regression needs --compare NAME")
    if percent is not None and not 0 <= percent < 1e6:
        raise UsageError(f"--fail-on-regression {percent}: a percentage of at least 0")
    if arguments.save is not None:
        path = saved_path(arguments.save)
        if path.parent != FOLDER:
            writable(str(path))


def list_benchmarks(benchmarks: list[Any], as_json: bool) -> int:
    rows = [{"name": b.name, "axes": {k: list(v) for k, v in b.axes.items()}} for b in benchmarks]
    if as_json:
        print(json.dumps(rows, indent=1))
        return 0
    for row in rows:
        axes = "; ".join(f"{k}: {', '.join(map(str, v))}" for k, v in row["axes"].items())
        print(f"{row['name']:<24} {axes}".rstrip())
    return 0


def show_compared(arguments: argparse.Namespace, compared: list[dict[str, Any]]) -> None:
    from kernwright.bench import _tables

    print(f"\nbeside {arguments.compare}:")
    for row in compared:
        name = f"{row['name']} {_tables.axes_text(row)}".strip()
        print(f"{name:<44} {_tables.verdict_text(row)}")


def show(arguments: argparse.Namespace, document: dict[str, Any], compared: Any) -> None:
    from kernwright.bench import _tables

    if arguments.json:
        whole = {**document, "compared": compared} if compared is not None else document
        print(json.dumps(whole, indent=1))
    elif arguments.markdown:
        print(_tables.markdown(document["rows"], compared, arguments.compare))
    elif compared is not None:
        show_compared(arguments, compared)


def run_files(
    arguments: argparse.Namespace, old: dict[str, Any] | None
) -> tuple[dict[str, Any], list[dict[str, Any]] | None]:
    """Measures the benchmarks of files; the document and what it is beside `old`."""
    from kernwright import bench
    from kernwright.bench import _tables

    quiet = arguments.json or arguments.markdown
    document = bench.run(
        chosen_benchmarks(arguments),
        axes=chosen_axes(arguments),
        quick=arguments.quick,
        progress=None if quiet else lambda row: print(_tables.line(row), flush=True),
    )
    compared = None if old is None else bench.compare(document, old)
    if arguments.save is not None:  # after the comparison: a run may replace what it is beside
        save_run(document, saved_path(arguments.save))
    show(arguments, document, compared)
    return document, compared


def run(arguments: argparse.Namespace) -> int:
    from kernwright.bench import _compare, _tables

    check_use(arguments)
    if arguments.show is not None:
        return _bench_table.show_saved(arguments, load_run)
    old = load_run(arguments.compare) if arguments.compare is not None else None
    if arguments.list:
        if arguments.files:
            return list_benchmarks(chosen_benchmarks(arguments), arguments.json)
        return _bench_table.list_rows(_bench_table.planned_rows(arguments), arguments.json)
    if old is not None:
        _compare.same_device(_compare.device_now(), old)
    if arguments.files:
        document, compared = run_files(arguments, old)
    else:
        path = saved_path(arguments.save) if arguments.save is not None else None
        document, compared = _bench_table.run(arguments, old, path, save_run, load_run)
        if compared is not None and not (arguments.json or arguments.markdown):
            show_compared(arguments, compared)
    bad = [row for row in document["rows"] if row["status"] in ("wrong", "error")]
    if bad:
        print(f"{counted(len(bad), 'case')} wrong or failed", file=sys.stderr)
    slower = []
    if compared is not None and arguments.fail_on_regression is not None:
        slower = _compare.regressions(compared, arguments.fail_on_regression)
        for row in slower:
            name = f"{row['name']} {_tables.axes_text(row)}".strip()
            print(f"regression: {name}: {_tables.verdict_text(row)}", file=sys.stderr)
    return 1 if bad or slower else 0
