"""What only a real GPU can tell: how its driver answers damaged code, bad launches, calls during a
capture and sticky errors; what modules and streams cost over thousands; how quick a compile is
cancelled; what our checks cost. Each part runs in processes of its own with a deadline, so that a
crash or a hang is a finding and no more.

    python tests/gpu/measure_unknowns.py            # bench/results/driver_behaviour.json
    python scripts/driver_behaviour.py              # docs/driver_behaviour.md, from that
"""

import argparse
import ctypes
import pathlib
import platform
import sys
import time

import sticky_errors
import unknown_calls
import unknown_code
from raw_driver import Driver, arch_of, timed

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUTPUT = ROOT / "bench/results/driver_behaviour.json"
sys.path.insert(0, str(ROOT / "bench"))
import documents  # noqa: E402

PARTS = {
    "images": unknown_code.part_images,
    "launches": unknown_calls.part_launches,
    "captures": unknown_calls.part_captures,
    "churn": unknown_calls.part_churn,
    "cancel": unknown_code.part_cancel,
    "callback": unknown_code.part_callback,
    "includes": unknown_code.part_includes,
    "versions": unknown_code.part_versions,
    "checks": unknown_calls.part_checks,
}
MEASURES = {
    "launches": unknown_calls.measure_launches,
    "captures": unknown_calls.measure_captures,
    "versions": unknown_code.measure_versions,
    "checks": unknown_calls.measure_checks,
    "compiling": unknown_code.measure_compiling,
    "churn": unknown_calls.measure_churn,
    "sticky": sticky_errors.measure,
    "images": unknown_code.measure_images,
}


def describe_machine():
    d = Driver()
    name = ctypes.create_string_buffer(128)
    d.must("cuDeviceGetName", name, 127, 0)
    version = ctypes.c_int()
    d.must("cuDriverGetVersion", ctypes.byref(version))
    return {"device": name.value.decode(), "devices": d.count(), "driver": version.value,
            "python": platform.python_version(), "arch": arch_of(d)}  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=pathlib.Path, default=OUTPUT)
    parser.add_argument("--only", action="append", choices=MEASURES, help="may be repeated")
    parser.add_argument("--budget", type=float, default=230, help="seconds; no part begins later")
    parser.add_argument("--part", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        PARTS[options.part[0]](*options.part[1:])
        return 0
    begin = time.monotonic()
    document = {"benchmark": "driver_behaviour", "machine": describe_machine(), "parts": {}}
    for name in options.only or MEASURES:
        if time.monotonic() - begin > options.budget:
            document["parts"][name] = {"error": "no time left"}
            continue
        try:
            found, took = timed(MEASURES[name])
        except Exception as error:
            found, took = {"error": f"{type(error).__name__}: {error}"}, 0.0
        document["parts"][name] = found
        document.setdefault("seconds", {})[name] = round(took / 1e3, 1)
        print(f"{name}: {took / 1e3:.1f} s", flush=True)
        # Paths in messages begin at the project's root.
        text = documents.text(document).replace(f"{ROOT}/", "")
        options.output.write_text(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
