"""kernwright pack: compiles many kernels for many architectures into one file."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

from kernwright.cli import UsageError
from kernwright.cli._options import add_compiler_options, compiler_options

MANIFEST_KEYS = {"archs", "items"}
ITEM_KEYS = {"file", "names", "options"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "inputs",
        nargs="*",
        metavar="FILE",
        help='.cu files, and .json manifests: {"archs": [...], "items": [{"file": "a.cu", '
        '"names": ["scale<float>"], "options": {...}}]}',
    )
    parser.add_argument(
        "--record", action="append", default=[], metavar="FILE", help="written by KERNWRIGHT_RECORD"
    )
    parser.add_argument(
        "--arch", action="append", default=[], help="sm_80, sm_90a, compute_90, sim; repeatable"
    )
    parser.add_argument("-o", "--output", metavar="PACK", help="the file to write")
    parser.add_argument("--list", metavar="PACK", help="show what a pack holds instead")
    parser.add_argument("--json", action="store_true", help="print one JSON document only")
    add_compiler_options(parser)


def existing(path: str) -> str:
    if not os.path.isfile(path):
        raise UsageError(f"there is no file {path!r}")
    return path


def read_manifest(path: str) -> tuple[list[Any], list[str]]:
    """The programs that a manifest names, relative to its own folder, and its architectures."""
    import kernwright as kw

    try:
        manifest = json.loads(Path(existing(path)).read_text())
        unknown = set(manifest) - MANIFEST_KEYS
        items = manifest["items"]
        kernels: list[Any] = []
        for item in items:
            unknown |= set(item) - ITEM_KEYS
            source = Path(path).parent / item["file"]
            module = kw.module(Path(existing(str(source))), **item.get("options", {}))
            names = item.get("names", [])
            kernels += [module.kernel(name) for name in names] if names else [module]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{path} is no manifest: {type(error).__name__}: {error}") from error
    if unknown:
        raise UsageError(f"{path}: unknown keys {', '.join(sorted(unknown))}")
    return kernels, list(manifest.get("archs", []))


def write(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    import kernwright as kw

    kernels: list[Any] = []
    archs = [arch for text in arguments.arch for arch in text.split(",")]
    for path in arguments.inputs:
        if path.endswith(".json"):
            more, wanted = read_manifest(path)
            kernels += more
            archs += wanted
        else:
            kernels.append(kw.module(Path(existing(path)), options=compiler_options(arguments)))
    if not kernels and not arguments.record:
        raise UsageError("nothing to pack: name .cu files, a manifest or --record FILE")
    if not arguments.output:
        raise UsageError("-o PACK is missing")
    if not archs:
        raise UsageError("--arch is missing: for example --arch sm_80 --arch sm_90")
    for record in arguments.record:
        existing(record)
    return kw.pack(
        arguments.output, kernels, archs=list(dict.fromkeys(archs)), records=arguments.record
    )


def run(arguments: argparse.Namespace) -> int:
    from kernwright import _core

    rows = _core._pack_read(existing(arguments.list)) if arguments.list else write(arguments)
    if arguments.json:
        print(json.dumps(rows, indent=1))
        return 0
    for row in rows:
        names = ", ".join(row["kernels"])
        print(f"{row['arch']:11}  {row['bytes']:>9} bytes  {row['source']}: {names}")
    return 0
