"""Compiles the C++ of README.md and docs/: each ```cpp block as a reader pastes it into a function.

    python tests/compile_pages.py COMPILER PREFIX SOURCE

PREFIX holds an installed Kernwright. The headers of the kernel library are not installed: its
blocks get those of SOURCE, the repository. Exit code 1 names the blocks that do not compile.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

BLOCK = re.compile(r"^```cpp\n(.*?)^```", re.DOTALL | re.MULTILINE)
# What the text around a page's blocks has introduced.
NAMES = {
    "products": "Array& x, Array& weight, Array& bias, Array& residual, Stream& stream",
    "schedule": "Device& device, kernwright::Graph& graph, const Stream& behind",
    "tensor_maps": "Device& device, const Kernel& kernel, Array& x, Array& out",
    "slices": "const Kernel& kernel, const kernwright::LaunchConfig& config, "
    "std::span<void* const> arguments",
    "textures": "Device& device, const Kernel& kernel, Array& y, std::vector<float>& pixels",
}
OF_REPOSITORY = {"products": "kernels_src/gemm/gemm.h"}


def unit(page: str, block: str) -> str:
    """A source file with the block as the body of a function."""
    lines = block.splitlines()
    includes = [line for line in lines if line.startswith("#include")]
    body = [line for line in lines if not line.startswith("#include")]
    if page in OF_REPOSITORY:
        includes.append(f'#include "{OF_REPOSITORY[page]}"')
    parameters = re.sub(r"\b(Array|Device|Kernel|Stream)\b", r"kernwright::\1", NAMES.get(page, ""))
    head = ["#include <kernwright.h>", "#include <vector>", *includes]
    return "\n".join([*head, f"void pasted({parameters}) {{", *body, "}"]) + "\n"


def problem_of(compiler: str, folders: list[Path], text: str) -> str:
    """What the compiler says of the text; empty when it compiles."""
    command = [compiler, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror"]
    command += ["-Wno-unused", "-Wno-missing-field-initializers", "-x", "c++", "-"]
    command += [option for folder in folders for option in ("-isystem", str(folder))]
    ended = subprocess.run(command, input=text, capture_output=True, text=True)
    return ended.stderr if ended.returncode else ""


def unnoticed(compiler: str, folders: list[Path], units: list[tuple[str, str]]) -> list[str]:
    """The blocks behind which the compiler finds no mistake: it may take everything.

    One text has all of them, for a text takes as long as the headers.
    """
    texts = []
    for number, (_, text) in enumerate(units):
        mistake = f"int broken{number} = nothing{number};"
        texts.append(text.replace("void pasted(", f"void pasted{number}(") + mistake)
    said = problem_of(compiler, folders, "\n".join(texts) + "\n")
    missing = [not re.search(rf"\bnothing{number}\b", said) for number in range(len(units))]
    return [title for (title, _), is_missing in zip(units, missing, strict=True) if is_missing]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("compiler")
    parser.add_argument("prefix", type=Path)
    parser.add_argument("source", type=Path)
    arguments = parser.parse_args()
    installed = [arguments.prefix / "include" / "kernwright"]
    repository = [arguments.source / folder for folder in ("bindings/cpp", "runtime", ".")]
    problems, users, ours = [], [], []
    for page in [arguments.source / "README.md", *sorted((arguments.source / "docs").glob("*.md"))]:
        for number, block in enumerate(BLOCK.findall(page.read_text(encoding="utf-8")), 1):
            units = ours if page.stem in OF_REPOSITORY else users
            units.append((f"{page.name}, C++ block {number}", unit(page.stem, block)))
    for folders, units in ((installed, users), (repository, ours)):
        for title, text in units:
            if problem := problem_of(arguments.compiler, folders, text):
                problems.append(f"{title}:\n{problem}")
        if units and not problems:
            titles = unnoticed(arguments.compiler, folders, units)
            problems += [f"{title}: a mistake is not noticed" for title in titles]
    count = len(users) + len(ours)
    if count < 4:
        problems.append(f"only {count} blocks of C++ were found")
    print("\n".join(problems) or f"{count} blocks compile")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
