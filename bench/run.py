"""Runs the benchmarks that this machine can run, each in its own process."""

from __future__ import annotations

import argparse
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).parent


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent / "build" / "release")
    options = parser.parse_args()
    import kernwright as kw

    suffix = "_sim" if kw.current_device().is_simulated else "_gpu"
    results = HERE / "results"

    def script(name: str, output: str) -> list:
        return [sys.executable, HERE / f"{name}.py", "-o", results / f"{output}.json"]

    commands = [
        script(name, name + suffix) for name in ("import_time", "compile_cost", "first_call_parts")
    ]
    commands.append([options.build / "bench" / "sim_kernels", "-o", results / "sim_kernels.json"])
    if suffix == "_gpu":
        subjects = ("launch_overhead", "alloc_cost", "graph_replay", "transfer_pipeline")
        subjects += ("first_call", "choice_rule")
        commands.extend(script(name, name) for name in subjects)
    return max(subprocess.run(command).returncode for command in commands)


if __name__ == "__main__":
    sys.exit(main())
