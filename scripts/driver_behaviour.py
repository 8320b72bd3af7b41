"""Writes docs/driver_behaviour.md from the measurements of tests/gpu/measure_unknowns.py."""

import argparse
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
MEASURED = ROOT / "bench" / "results" / "driver_behaviour.json"
PAGE = ROOT / "docs" / "driver_behaviour.md"


def cell(value):
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, dict):
        return ", ".join(f"{key}: {cell(item)}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(cell(item) for item in value)
    return str(value).replace("|", "\\|").replace("\n", " ")


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(cell(value) for value in row) + " |" for row in rows]
    return [*lines, ""]


def how_it_ended(child):
    """A line about a child process that failed; empty otherwise."""
    if child.get("ended", 0) == 0 and "error" not in child:
        return []
    text = str(child.get("error", "")).strip().splitlines()
    return [f"(The measuring process ended with {child.get('ended')}: {cell(text[-1:])})", ""]


def sticky(part):
    lines = ["## Sticky errors", ""]
    lines += [
        "Each error was provoked in a process of its own. *After* is the result of a kernel "
        "launched afterwards; *reset* is `cuDevicePrimaryCtxReset`.",
        "",
    ]
    rows = []
    for name, found in part.items():
        seen = found.get("driver", {}).get("findings", {})
        others = [value for key, value in seen.items() if key.startswith("after: device")]
        rows.append(
            [
                name,
                seen.get("error", found.get("error", "none")),
                others or "no other",
                seen.get("after: second context of the device", "-"),
                seen.get("reset", "-"),
                seen.get("after reset: the device", "-"),
                found.get("driver", {}).get("ended", "-"),
            ]
        )
    header = ["error", "first result", "another device after", "another context after",
              "reset: result, ms", "the device after the reset", "exit code"]  # fmt: skip
    lines += table(header, rows)
    kinds = [name for name, found in part.items() if found.get("driver", {}).get("findings")]
    calls = {}
    for name in kinds:
        for key, value in part[name]["driver"]["findings"].items():
            if key.startswith("call "):
                calls.setdefault(key[5:], {})[name] = value[0]
    lines += ["Calls after the error, in the order in which they were made:", ""]
    lines += table(
        ["call", *kinds], [[c, *(v.get(k, "-") for k in kinds)] for c, v in calls.items()]
    )
    lines += ["The same through the library:", ""]
    rows = []
    for name, found in part.items():
        seen = found.get("library", {}).get("findings")
        if seen is None:
            continue
        keys = ("exception", "later call, us", "reset", "after reset", "old array")
        rows.append([name, *(seen.get(key, "-") for key in keys)])
    header = ["error", "exception", "a later call, us", "`reset()`: result, ms", "after it",
              "an old array"]  # fmt: skip
    return lines + table(header, rows)


def images(part):
    lines = ["## Damaged object code", ""]
    lines += [
        f"Processes that crashed: {len(part.get('crashes', []))}; contexts lost to damaged code: "
        f"{part.get('contexts lost', 0)}.",
        "",
    ]
    rows = [[name, answers] for name, answers in part.get("answers", {}).items()]
    return lines + table(["damage", "results, with counts"], rows)


def launches(part):
    lines = ["## Launch dimensions", "", "The results of the driver and of the library.", ""]
    rows = [[name, *found] for name, found in part["findings"].items()]
    lines += table(["launch", "driver", "library", "opting in to shared memory"], rows)
    differ = part.get("differ", [])
    lines += [f"They differ for: {cell(differ) if differ else 'none'}.", ""]
    return lines + how_it_ended(part)


def captures(part):
    lines = ["## Calls during a capture", ""]
    lines += ["Each cell has the result of the call, then that of the end of the capture."]
    lines += ["The stream waits for the default stream only where the column says blocking.", ""]
    calls = {}
    for key, value in part["findings"].items():
        mode, name = key.split(": ", 1)
        calls.setdefault(name, {})[mode] = "; ".join(value)
    modes = dict.fromkeys(key.split(": ", 1)[0] for key in part["findings"])
    rows = [[name, *(found.get(mode, "-") for mode in modes)] for name, found in calls.items()]
    return lines + table(["call", *modes], rows) + how_it_ended(part)


def churn(part):
    lines = ["## Thousands of modules, streams and events", ""]
    rows, kept = [], []
    for name, child in part.items():
        found = child["findings"].get("churn", {})
        keys = ("rounds", "us each", "device bytes per 1000", "host bytes per 1000", "open files")
        rows.append([name, *(found.get(key, "-") for key in keys)])
        if "each of 500 kept" in child["findings"]:
            kept.append([name, child["findings"]["each of 500 kept"]])
    header = ["made and dropped", "rounds", "us each", "device bytes per 1000",
              "host bytes per 1000", "more open files"]  # fmt: skip
    lines += table(header, rows)
    return lines + table(["500 kept at once", "each"], kept)


def plain(title, text):
    """A function for a section: a table with two columns, of one or more child processes."""

    def section(part):
        lines = [f"## {title}", "", text, ""]
        children = {"": part} if "findings" in part else part
        for name, child in children.items():
            if not isinstance(child, dict):
                lines += [f"{name}: {cell(child)}", ""]
                continue
            head = name or "case"
            lines += table([head, "result"], child.get("findings", {}).items())
            lines += how_it_ended(child)
        return lines

    return section


SECTIONS = {
    "sticky": sticky,
    "images": images,
    "launches": launches,
    "captures": captures,
    "churn": churn,
    "compiling": plain("Compiling", "The time to end a cancelled compile, and the files that "
                       "sources can make NVRTC read."),
    "versions": plain("Code of other versions", "The results of `cuModuleLoadData`."),
    "checks": plain("The cost of checks", "From Python, the median of nine loops."),
}  # fmt: skip


def page(document):
    machine = document["machine"]
    driver = machine["driver"]
    lines = [
        "# How the driver behaves",
        "",
        f"Measured on {machine['devices']} x {machine['device']} with a driver of CUDA "
        f"{driver // 1000}.{driver % 1000 // 10} by `tests/gpu/measure_unknowns.py`; written by "
        "`scripts/driver_behaviour.py`. Other drivers may behave differently: the library relies "
        "only on behaviour that its tests check on every device.",
        "",
    ]
    for name, section in SECTIONS.items():
        part = document["parts"].get(name)
        if part is None:
            continue
        if set(part) == {"error"}:
            lines += [f"## {name}", "", f"Not measured: {cell(part['error'])}", ""]
        else:
            lines += section(part)
    return "\n".join(lines).rstrip() + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("measured", nargs="?", type=pathlib.Path, default=MEASURED)
    parser.add_argument("-o", "--output", type=pathlib.Path, default=PAGE)
    options = parser.parse_args()
    options.output.write_text(page(json.loads(options.measured.read_text())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
