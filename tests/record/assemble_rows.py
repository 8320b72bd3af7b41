"""Assembles the programs of the ISA table's rows, and lists the opcodes refused by ptxas.

    python tests/record/assemble_rows.py RECORD_ROWS REFUSED FOLDER [--ptxas ptxas]

calls RECORD_ROWS --make, assembles every STEM.ptx of FOLDER to STEM.cubin for sm_90, adds the
opcodes of the lines with errors to REFUSED ("opcode<tab>refused"), and starts again until nothing
is refused.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import re
import subprocess
import sys
from pathlib import Path

ERROR = re.compile(r"line (\d+); (?:error|fatal)\s*: (.*)")


def assemble(job: tuple[str, Path]) -> dict[str, str]:
    """One file; returns the refused opcodes with the messages of ptxas."""
    ptxas, path = job
    command = [ptxas, "-arch=sm_90", "-O1", str(path), "-o", str(path.with_suffix(".cubin"))]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = path.read_text().split("\n")
    refused: dict[str, str] = {}
    for number, text in ERROR.findall(result.stderr + result.stdout):
        at = min(int(number), len(lines)) - 1
        while at >= 0 and not lines[at].startswith("// "):
            at -= 1
        if at >= 0:
            refused[lines[at][3:]] = text
    if result.returncode != 0 and not refused:
        sys.exit(f"{path}: {result.stderr or result.stdout}")
    return refused


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("record_rows")
    parser.add_argument("refused", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--ptxas", default="ptxas")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    arguments.refused.touch()
    while True:
        make = [arguments.record_rows, "--make", str(arguments.refused), str(arguments.folder)]
        subprocess.run(make, check=True)
        jobs = [(arguments.ptxas, path) for path in sorted(arguments.folder.glob("*.ptx"))]
        refused: dict[str, str] = {}
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            for found in pool.map(assemble, jobs):
                refused.update(found)
        for opcode, text in list(refused.items())[:20]:
            print(f"{opcode}: {text}")
        print(f"{len(refused)} more opcodes refused")
        if not refused:
            return
        with arguments.refused.open("a") as file:
            file.writelines(f"{opcode}\trefused\n" for opcode in refused)


if __name__ == "__main__":
    main()
