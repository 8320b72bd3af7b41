"""kernwright pack: compiles many kernels for many architectures into one file."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

from kernwright._support.words import counted
from kernwright.cli import UsageError
from kernwright.cli._files import (
    architectures,
    complete_files,
    existing,
    read_text,
    writable,
)
from kernwright.cli._options import add_compiler_options, compiler_options

MANIFEST_KEYS = {"archs", "items"}
ITEM_KEYS = {"file", "names", "options", "store"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    inputs = parser.add_argument(
        "inputs",
        nargs="*",
        metavar="FILE",
        help='.cu files, and .json manifests: {"archs": [...], "items": [{"file": "a.cu", '
        '"names": ["scale<float>"], "options": {...}, "store": "tuned.jsonl"}]}',
    )
    record = parser.add_argument(
        "--record", action="append", default=[], metavar="FILE", help="written by KERNWRIGHT_RECORD"
    )
    parser.add_argument(
        "--arch", action="append", default=[], help="sm_80, sm_90a, compute_90, sim; repeatable"
    )
    parser.add_argument(
        "--library",
        action="append",
        default=[],
        metavar="NAME",
        help="an operation of the kernel library (softmax, add ...), with the kernels that calls "
        "of it launch on the current device; repeatable",
    )
    parser.add_argument("--dtype", action="append", help="element type of --library; repeatable")
    parser.add_argument(
        "--shape", action="append", metavar="MxN", help="shape of --library; repeatable"
    )
    output = parser.add_argument("-o", "--output", metavar="PACK", help="the file to write")
    shown = parser.add_argument("--list", metavar="PACK", help="show what a pack holds instead")
    for argument in (inputs, record, output, shown):
        complete_files(argument)
    parser.add_argument("--json", action="store_true", help="print one JSON document only")
    add_compiler_options(parser)


def read_manifest(path: str) -> tuple[list[Any], list[str]]:
    """The programs that a manifest names, relative to its own folder, and its architectures."""
    try:
        manifest = json.loads(read_text(path))
    except ValueError as error:
        raise UsageError(f"{path!r} is no manifest: {error}") from error
    items = table(path, manifest, "the manifest", MANIFEST_KEYS, "items").get("items")
    kernels: list[Any] = []
    for item in texts_or_tables(path, "items", items, dict):
        kernels += read_item(path, table(path, item, "an item", ITEM_KEYS, "file"))
    return kernels, texts_or_tables(path, "archs", manifest.get("archs", []), str)


def table(path: str, value: Any, what: str, keys: set[str], needed: str) -> dict[str, Any]:
    """A JSON object that has no key but those. Throws UsageError."""
    if not isinstance(value, dict):
        raise UsageError(f"{path!r}: {what} is a JSON object, got {json.dumps(value)[:40]}")
    if unknown := sorted(set(value) - keys):
        raise UsageError(
            f"{path!r}: unknown keys {', '.join(unknown)}; {what} has {', '.join(sorted(keys))}"
        )
    if needed not in value:
        raise UsageError(f"{path!r}: {what} needs a key {needed!r}")
    return value


def texts_or_tables(path: str, key: str, value: Any, kind: type) -> list[Any]:
    if not isinstance(value, list) or not all(isinstance(item, kind) for item in value):
        kinds = "strings" if kind is str else "JSON objects"
        raise UsageError(f"{path!r}: {key} is a list of {kinds}, got {json.dumps(value)[:40]}")
    return value


def read_item(path: str, item: dict[str, Any]) -> list[Any]:
    """The module of an item, or its kernels where it names some."""
    import kernwright as kw

    names = texts_or_tables(path, "names", item.get("names", []), str)
    options = item.get("options", {})
    texts = (item["file"], item.get("store", ""))
    if not all(isinstance(text, str) for text in texts) or not isinstance(options, dict):
        raise UsageError(
            f"{path!r}: of an item, file and store are strings and options is a JSON object"
        )
    source = existing(str(Path(path).parent / item["file"]))
    try:
        module = kw.module(Path(source), **options)
        if (store := item.get("store")) is not None:
            tuned = [module.kernel(name) for name in names] or [kw.kernel(Path(source), **options)]
            return [kernel.tuned(existing(str(Path(path).parent / store))) for kernel in tuned]
        return [module.kernel(name) for name in names] if names else [module]
    except (kw.InvalidArgument, kw.ArgumentError, kw.NameNotFound) as error:
        raise UsageError(f"{path!r}: {error}") from error


def shapes(texts: list[str] | None) -> list[tuple[int, ...]] | None:
    """Those of --shape. Throws UsageError."""
    try:
        return [tuple(int(part) for part in text.split("x")) for text in texts] if texts else None
    except ValueError as error:
        raise UsageError(f"--shape takes extents such as 64x4096: {error}") from error


def write(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    import kernwright as kw

    kernels: list[Any] = []
    archs = architectures(arguments.arch)
    for path in arguments.inputs:
        if path.endswith(".json"):
            more, wanted = read_manifest(path)
            kernels += more
            archs += wanted
        else:
            kernels.append(kw.module(Path(existing(path)), options=compiler_options(arguments)))
    if not kernels and not arguments.record and not arguments.library:
        raise UsageError(
            "nothing to pack: name .cu files, a manifest, --record FILE or --library NAME"
        )
    if not arguments.output:
        raise UsageError("-o PACK is missing")
    if not archs:
        raise UsageError("--arch is missing: for example --arch sm_80 --arch sm_90")
    writable(arguments.output)
    if os.path.exists(arguments.output) and not os.path.isfile(arguments.output):
        raise UsageError(f"{arguments.output!r} is no regular file: a pack would replace it")
    for record in arguments.record:
        existing(record)
    archs = list(dict.fromkeys(archs))
    for arch in archs:  # a wrong one is found before anything is compiled
        if arch != "sim":
            kw.Program("//", kw.ProgramOptions(arch=arch))
    return pack_kernels(arguments, kernels, archs)


def pack_kernels(
    arguments: argparse.Namespace, kernels: list[Any], archs: list[str]
) -> list[dict[str, Any]]:
    """The rows of the pack, which is there only when each of its sources has a kernel in it."""
    import kernwright as kw

    made = f"{arguments.output}.{os.getpid()}"
    try:
        rows = kw.pack(
            made,
            kernels,
            archs=archs,
            records=arguments.record,
            library=arguments.library,
            dtypes=arguments.dtype,
            shapes=shapes(arguments.shape),
        )
        for row in rows:
            if not row["kernels"]:
                raise UsageError(
                    f"{row['source']!r} has no kernel that is not a template: name instances in a "
                    'manifest, {"items": [{"file": ..., "names": ["scale<float>"]}]}'
                )
        os.replace(made, arguments.output)
    finally:
        if os.path.exists(made):
            os.remove(made)
    return rows


def run(arguments: argparse.Namespace) -> int:
    from kernwright import _core

    rows = _core._pack_read(existing(arguments.list)) if arguments.list else write(arguments)
    if arguments.json:
        print(json.dumps(rows, indent=1))
        return 0
    for row in rows:
        names = ", ".join(row["kernels"])
        print(f"{row['arch']:11}  {counted(row['bytes'], 'byte'):>15}  {row['source']}: {names}")
    return 0
