"""kernwright quantize: the files of a language model, with weights of few bits."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time

from kernwright.cli._models import add_device_argument, chosen_device


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "model", metavar="MODEL", help="a folder of Hugging Face's layout, or a .gguf file"
    )
    parser.add_argument("out", metavar="OUT", help="the folder or .gguf file that is made")
    parser.add_argument(
        "--format", required=True, metavar="F",
        help="fp8, int8, nf4 to a folder; q4_k, q5_k, q6_k, q8_0, ... to a .gguf file",
    )  # fmt: skip
    parser.add_argument("--dtype", choices=("float32", "float16", "bfloat16"))
    add_device_argument(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON document only")


def run(arguments: argparse.Namespace) -> int:
    from kernwright import llm

    device, begin = chosen_device(arguments), time.perf_counter()
    show = _Lines()
    with device:
        llm.quantize(
            arguments.model, arguments.out, arguments.format, dtype=arguments.dtype, device=device,
            progress=show,
        )  # fmt: skip
    before, after = _size(arguments.model), _size(arguments.out)
    seconds = time.perf_counter() - begin
    if arguments.json:
        found = {"out": arguments.out, "format": arguments.format, "bytes": after,
                 "bytes_before": before, "seconds": seconds}  # fmt: skip
        print(json.dumps(found, indent=1))
    else:
        share = f"{after / 1e6:,.1f} MB, {after / before:.0%} of {before / 1e6:,.1f} MB"
        print(f"{arguments.out}: {share}, in {seconds:.1f} s")
    return 0


class _Lines:
    """Progress on stderr: one line that changes on a terminal, else a line each tenth."""

    def __init__(self) -> None:
        self._terminal, self._tenth = sys.stderr.isatty(), -1

    def __call__(self, done: int, total: int, name: str) -> None:
        tenth = 10 * done // max(total, 1)
        if self._terminal:
            end = "\n" if done == total else ""
            print(f"\r\x1b[K{done}/{total} {name}", end=end, file=sys.stderr, flush=True)
        elif tenth != self._tenth:
            print(f"{done}/{total} tensors {name}".rstrip(), file=sys.stderr, flush=True)
        self._tenth = tenth


def _size(path: str) -> int:
    """Bytes of a file, or of all files of weights in a folder."""
    if os.path.isfile(path):
        return os.path.getsize(path)
    return sum(
        each.stat().st_size for each in os.scandir(path) if each.name.endswith(".safetensors")
    )
