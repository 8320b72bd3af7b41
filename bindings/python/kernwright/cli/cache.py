"""kernwright cache: shows, checks and empties the disk cache of compiled kernels."""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

from kernwright._core import _describe_bytes as size_text
from kernwright._support.words import counted
from kernwright.cli import UsageError

UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
ACTIONS = {
    "info": "where it is, how full, and whether it is used",
    "list": "one line for each entry, the last used first",
    "verify": "read every entry; remove what is damaged",
    "clear": "remove everything",
    "trim": "remove what was not used for longest",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, description in ACTIONS.items():
        action = actions.add_parser(name, help=description, description=description)
        action.add_argument("--json", action="store_true", help="print one JSON document only")
        if name == "trim":
            action.add_argument("bytes", help="how much may stay: 500M, 2G")
        if name == "verify":
            action.add_argument("--keep", action="store_true", help="leave damaged entries alone")


def byte_count(text: str) -> int:
    """ "512M" is 536870912."""
    digits, unit = (text[:-1], text[-1].upper()) if text[-1:].isalpha() else (text, "")
    if not digits.isdecimal() or unit not in UNITS:
        raise UsageError(f"{text!r} is no number of bytes: write 500M, 2G")
    return int(digits) * UNITS[unit]


def show_info(info: dict[str, Any]) -> None:
    print(f"folder     {info['path'] or 'none'}")
    state = info["state"] if info["mode"] == "disk" else f"off (KERNWRIGHT_CACHE={info['mode']})"
    print(f"state      {state}" + (f": {info['reason']}" if info["reason"] else ""))
    used = size_text(info["bytes"] + info["header_bytes"])
    print(f"entries    {info['entries']}, {size_text(info['bytes'])}")
    print(f"headers    {size_text(info['header_bytes'])}")
    print(f"in all     {used} of {size_text(info['limit'])}")


def show_list(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(row["last_used"]))
        names = ", ".join(row["kernels"])
        print(
            f"{row['key'][:12]}  {used}  {row['arch']:11}  {size_text(row['bytes']):>10}  {names}"
        )


def show_verify(report: dict[str, Any]) -> None:
    for entry in report["damaged"]:
        print(f"{entry['file']}: {entry['reason']}")
    print(
        f"{counted(report['checked'], 'entry', 'entries')} read, {len(report['damaged'])} damaged"
    )


def show_removal(report: dict[str, Any]) -> None:
    print(f"removed {counted(report['entries'], 'entry', 'entries')}, {size_text(report['bytes'])}")


def run(arguments: argparse.Namespace) -> int:
    from kernwright import cache

    result: Any
    show: Any
    if arguments.action == "info":
        result, show = cache.info(), show_info
    elif arguments.action == "list":
        result, show = cache.list(), show_list
    elif arguments.action == "verify":
        result, show = cache.verify(repair=not arguments.keep), show_verify
    elif arguments.action == "clear":
        result, show = cache.clear(), show_removal
    else:
        result, show = cache.trim(byte_count(arguments.bytes)), show_removal
    if arguments.json:
        print(json.dumps(result, indent=1))
    else:
        show(result)
    return 1 if arguments.action == "verify" and result["damaged"] else 0
