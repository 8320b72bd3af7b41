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
    commands = [[sys.executable, str(HERE / "import_time.py"), "-o", results / f"import_time{suffix}.json"],
                [sys.executable, str(HERE / "compile_cost.py"), "-o", results / f"compile_cost{suffix}.json"],
                [options.build / "bench" / "sim_kernels", "-o", results / "sim_kernels.json"]]  # fmt: skip
    if suffix == "_gpu":
        commands.append([sys.executable, str(HERE / "launch_overhead.py")])
    return max(subprocess.run(command).returncode for command in commands)


if __name__ == "__main__":
    sys.exit(main())
