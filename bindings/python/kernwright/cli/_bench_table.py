"""The part of kernwright bench that measures this package's own operations."""

from __future__ import annotations

import argparse
import importlib.util
import json
import pathlib
import sys
from collections.abc import Callable
from typing import Any

from kernwright._support.words import counted
from kernwright.cli import UsageError

Load = Callable[[str], dict[str, Any]]
Save = Callable[[dict[str, Any], pathlib.Path], None]
GROUPS = {
    "gemm": "matrix products",
    "gemv": "products with few rows",
    "attention": "attention, and decoding over a cache",
}
PEERS = ("torch", "compile", "cupy", "triton")
_SECONDS, _QUICK_SECONDS = 1.0, 0.15


def add_arguments(parser: argparse.ArgumentParser) -> None:
    table = parser.add_argument_group("of this package's operations, without FILE")
    for group, what in GROUPS.items():
        table.add_argument(f"--{group}", action="store_true", help=f"only {what}")
    table.add_argument(
        "--peers",
        metavar="NAMES",
        help=f"beside these, of {', '.join(PEERS)}; none; default: all that are installed",
    )
    table.add_argument(
        "--seconds-per-row",
        type=float,
        metavar="S",
        help=f"measure a row so long (default {_SECONDS:g}; {_QUICK_SECONDS:g} with --quick)",
    )
    table.add_argument(
        "--random",
        type=int,
        metavar="N",
        help="N random rows in place of the table's: shapes, dtypes and layouts of language "
        "models, and odd ones, beside torch, or CuPy where it is not installed; with percentiles",
    )
    table.add_argument("--seed", type=int, metavar="S", help="of --random: other rows (default 0)")
    table.add_argument(
        "--part", metavar="I/N", help="only this part of the rows; --save adds it to the run"
    )
    table.add_argument(
        "--show", nargs="+", metavar="NAME", help="print saved runs as one table, measure nothing"
    )


def texts(value: str | None, option: str) -> list[str] | None:
    """The parts of A,B,C."""
    if value is None:
        return None
    found = [part.strip() for part in value.split(",")]
    if not all(found):
        raise UsageError(f"{option} {value!r} has an empty value")
    return found


def size_of(text: str) -> int:
    """4096, 2^12 or 2**12"""
    base, power, exponent = text.replace("**", "^").partition("^")
    try:
        return int(base) ** int(exponent) if power else int(base)
    except ValueError:
        raise UsageError(f"{text!r} is no size: write 4096 or 2^12") from None


def _sizes(value: str | None) -> list[int] | None:
    found = texts(value, "--sizes")
    return None if found is None else [size_of(text) for text in found]


def _peers(arguments: argparse.Namespace) -> tuple[str, ...]:
    value = arguments.peers
    if value is None and arguments.random is not None:
        return ("torch",) if importlib.util.find_spec("torch") else ("cupy",)
    if value is None:
        return PEERS
    if value == "none":
        return ()
    found = texts(value, "--peers") or []
    for name in found:
        if name not in PEERS:
            raise UsageError(f"there is no peer {name!r}; there is: {', '.join(PEERS)}, none")
    return tuple(found)


def _part(value: str | None) -> tuple[int, int]:
    if value is None:
        return 1, 1
    number, slash, count = value.partition("/")
    if not (slash and number.isdigit() and count.isdigit()):
        raise UsageError(f"--part {value!r}: write 1/3 for the first of three parts")
    return int(number), int(count)


def _seconds(arguments: argparse.Namespace) -> float:
    given = arguments.seconds_per_row
    if given is None:
        return _QUICK_SECONDS if arguments.quick else _SECONDS
    if not 0 < given <= 3600:
        raise UsageError(f"--seconds-per-row {given}: above 0, at most 3600")
    return float(given)


def check_use(arguments: argparse.Namespace) -> None:
    """Throws UsageError for options that do not go together."""
    own = ("peers", "seconds_per_row", "random", "seed", "part", "show")
    for name in (*own, *GROUPS) if arguments.files else ():
        if getattr(arguments, name) not in (None, False):
            raise UsageError(f"--{name.replace('_', '-')} is of this package's operations, "
                             "not of a FILE's")  # fmt: skip
    if arguments.random is None and arguments.seed is not None:
        raise UsageError("--seed is of --random N")
    if arguments.random is not None and arguments.sizes is not None:
        raise UsageError("--random draws sizes itself: leave --sizes out")
    if not arguments.files and arguments.axis:
        raise UsageError("--axis is of the benchmarks in a FILE; operations have --sizes, --dtypes")


def planned_rows(arguments: argparse.Namespace) -> list[Any]:
    from kernwright.bench._table import draws, plan

    groups = [group for group in GROUPS if getattr(arguments, group)]
    only = [*groups, *(texts(arguments.k, "--only") or [])] or None
    dtypes = texts(arguments.dtypes, "--dtypes")
    if arguments.random is not None:
        rows = draws.drawn(arguments.random, arguments.seed or 0, only, dtypes)
    else:
        rows = plan.planned(only, _sizes(arguments.sizes), dtypes, arguments.quick)
    return plan.part_of(rows, _part(arguments.part))


def list_rows(rows: list[Any], as_json: bool) -> int:
    if as_json:
        print(json.dumps([{"name": r.operation.name, "axes": r.axes} for r in rows], indent=1))
        return 0
    for row in rows:
        axes = row.axes
        text = f"{row.operation.name:<26} {axes['dtype']:<9} {axes['shape']}"
        print(f"{text} {axes.get('layout', '')}".rstrip())
    return 0


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["name"], *sorted(row["axes"].items())


def joined(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Both runs' rows; of the same row that of `new`. Throws InvalidArgument for two devices."""
    from kernwright.bench._compare import same_device

    same_device(new, old)
    fresh = {_key(row) for row in new["rows"]}
    kept = [row for row in old["rows"] if _key(row) not in fresh]
    return _summarised({**old, **new, "rows": kept + new["rows"]})


def _summarised(document: dict[str, Any]) -> dict[str, Any]:
    """With what random rows say together."""
    if "random" not in document:
        return document
    from kernwright.bench._table import shares

    draws = {name: document["random"][name] for name in ("draws", "seed")}
    return {**document, "random": {**draws, **shares.summary(document["rows"])}}


def show_saved(arguments: argparse.Namespace, load: Load) -> int:
    documents = [load(name) for name in arguments.show]
    whole = documents[0]
    for document in documents[1:]:
        whole = joined(whole, document)
    if all({"dtype", "shape"} <= row["axes"].keys() for row in whole["rows"]):
        show(arguments, whole, None)
    else:
        _show_own(arguments, whole)
    return 0


def _show_own(arguments: argparse.Namespace, document: dict[str, Any]) -> None:
    """A run of the caller's own benchmarks."""
    from kernwright.bench import _tables

    if arguments.json:
        print(json.dumps(document, indent=1))
    elif arguments.markdown:
        print(_tables.markdown(document["rows"], None, ""))
    else:
        for row in document["rows"]:
            print(_tables.line(row))


def show(arguments: argparse.Namespace, document: dict[str, Any], compared: Any) -> None:
    from kernwright.bench._table import shares, text

    if arguments.json:
        whole = {**document, "compared": compared} if compared is not None else document
        print(json.dumps(whole, indent=1))
    elif arguments.markdown:
        print(text.heading(document).replace("\n", "\n\n"), end="\n\n")
        print(text.markdown(document["rows"], compared, arguments.compare or ""))
        if "random" in document:
            print(f"\n{shares.markdown(document['random'])}")
        return
    elif arguments.show:
        print(text.heading(document))
        for row in document["rows"]:
            print(text.line(row))
    if "random" in document and not arguments.json:
        print("\n".join(shares.lines(document["random"])))


def _measured(
    arguments: argparse.Namespace, rows: list[Any], keep: Callable[[dict[str, Any]], None]
) -> dict[str, Any]:
    """The document, kept after every row."""
    from kernwright.bench._table import text
    from kernwright.bench._table.engine import Engine, Options

    stream = sys.stderr if arguments.json or arguments.markdown else sys.stdout
    engine = Engine(Options(_peers(arguments), _seconds(arguments)))
    print(text.heading(engine.document([])), file=stream, flush=True)
    found: list[dict[str, Any]] = []

    def document() -> dict[str, Any]:
        whole = engine.document(found)
        if arguments.random is None:
            return whole
        draws = {"draws": arguments.random, "seed": arguments.seed or 0}
        return _summarised({**whole, "random": draws})

    for place, row in enumerate(rows):
        found.append(engine.row(row))
        keep(document())
        print(text.line(found[-1], f"{place + 1}/{len(rows)}"), file=stream, flush=True)
    return document()


def run(
    arguments: argparse.Namespace, old: dict[str, Any] | None, path: pathlib.Path | None,
    save: Save, load: Load,
) -> tuple[dict[str, Any], list[dict[str, Any]] | None]:  # fmt: skip
    """Measures, keeps and shows; the document and what it is beside `old`."""
    from kernwright import bench

    rows = planned_rows(arguments)
    before = None
    if path is not None and arguments.part is not None and path.exists():
        before = load(str(arguments.save))

    def keep(document: dict[str, Any]) -> None:
        if path is not None:
            save(document if before is None else joined(before, document), path)

    document = _measured(arguments, rows, keep)
    compared = None
    if old is not None:
        wanted = {_key(row) for row in document["rows"]}
        compared = bench.compare(
            document, {**old, "rows": [row for row in old["rows"] if _key(row) in wanted]}
        )
    show(arguments, document, compared)
    if document["device"]["is_simulated"]:
        print("simulated device: counts, not times; they tell nothing of a GPU", file=sys.stderr)
    skipped = sum(row["status"] == "skipped" for row in document["rows"])
    if skipped:
        print(f"{counted(skipped, 'row')} skipped", file=sys.stderr)
    return document, compared
