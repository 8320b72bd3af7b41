"""The C++ reference as Markdown pages, from the comments of the public headers."""

from __future__ import annotations

import dataclasses
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
UMBRELLA = ROOT / "bindings" / "cpp" / "kernwright.h"
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
TYPE = re.compile(r"^(?:template <[^>]*> )?(?:enum class|enum|class|struct) (\w+)")
TITLES = {
    "base": "Errors and logging",
    "core": "Devices, streams, kernels",
    "memory": "Memory",
    "schedule": "Scheduling",
    "array": "Arrays",
    "sim": "The simulated device",
    "jit": "Compiling",
    "worker": "Processes",
    "tune": "Tuning and judging",
    "kernels_src": "Device headers",
}


@dataclasses.dataclass
class Declaration:
    """A declaration with its comment; a class has members. `remark` is the comment after it."""

    text: str
    comment: str
    remark: str
    members: list[Declaration] = dataclasses.field(default_factory=list)

    @property
    def name(self) -> str:
        found = TYPE.match(self.text)
        if found:
            return found[1]
        before = self.text.partition("(")[0]
        names = re.findall(r"\w+", before.partition(" = ")[0])
        return names[-1] if names else before


def pages() -> dict[str, str]:
    """Markdown by module, from lower layers to higher ones."""
    made = {module: f"# C++: {title}\n\n" for module, title in TITLES.items()}
    for include in INCLUDE.findall(UMBRELLA.read_text()):
        module = include.split("/")[0]
        made[module] += header_section(include)
    return made


def header_section(include: str) -> str:
    path = next(p for p in (ROOT / include, ROOT / "runtime" / include) if p.exists())
    text = path.read_text()
    banner = text.split("\n", 1)[0].removeprefix("//").strip()
    parts = [f"## {include}\n\n{banner}\n\n"]
    parts += [
        section(each) for each in declarations(text) if each.comment or each.remark or each.members
    ]
    return "".join(parts)


def section(declaration: Declaration) -> str:
    parts = [f"### {declaration.name}\n\n```cpp\n{declaration.text}\n```\n\n"]
    comment = "\n".join(filter(None, (declaration.comment, declaration.remark)))
    if comment:
        parts.append(f"{escaped(comment)}\n\n")
    if declaration.members:
        rows = [member_text(each) for each in declaration.members]
        parts.append("```cpp\n" + "\n".join(rows).strip("\n") + "\n```\n\n")
    return "".join(parts)


def member_text(member: Declaration) -> str:
    lines = member.comment.split("\n") if member.comment else []
    remark = f"  // {member.remark}" if member.remark else ""
    if len(member.text) + len(remark) > 96:
        lines, remark = [*lines, member.remark], ""
    comment = "".join(f"\n// {line}" for line in lines)
    return f"{comment}\n{member.text}{remark}".removeprefix("" if lines else "\n")


def escaped(text: str) -> str:
    pieces = text.split("`")
    for place in range(0, len(pieces), 2):
        for mark in "\\*_[":
            pieces[place] = pieces[place].replace(mark, "\\" + mark)
        pieces[place] = pieces[place].replace("<", "&lt;")
    return "`".join(pieces)


def declarations(text: str) -> list[Declaration]:
    """The public declarations of a header of this project's style, with their comments."""
    return Reader(text).read()


class Reader:
    """Goes through the lines of a header; brackets tell where declarations end."""

    def __init__(self, text: str) -> None:
        self.found: list[Declaration] = []
        self.owner: Declaration | None = None
        self.public = True
        self.comment: list[str] = []
        self.lines = iter(text.split("\n"))

    def read(self) -> list[Declaration]:
        for line in self.lines:
            self.take(line.strip())
        return self.found

    def take(self, line: str) -> None:
        if line.startswith("///") and not line.startswith("///<"):
            self.comment.append(line.removeprefix("///").strip())
        elif line in ("public:", "protected:", "private:"):
            self.public = line == "public:"
            self.comment = []
        elif line == "};":
            self.owner = None
            self.public = True
        elif not line or line.startswith(("#", "//", "namespace", "}", "using namespace")):
            self.comment = []
        else:
            self.declare(line)

    def declare(self, line: str) -> None:
        """A declaration that begins with this line; its body, if any, is skipped."""
        text, remark = split_remark(line)
        remarks = [remark] if remark else []
        while not is_complete(text):
            more, remark = split_remark(next(self.lines).strip())
            text += " " + more
            remarks += [remark] if remark else []
        opens = TYPE.match(text) and text.endswith("{") and self.owner is None
        if not opens:
            text = self.without_body(text)
        comment = "\n".join(self.comment)
        self.comment = []
        made = Declaration(text.removesuffix("{").rstrip(), comment, " ".join(remarks))
        if opens:
            self.owner = made
            self.public = not text.startswith("class")
            self.found.append(made)
        elif TYPE.match(text) and text.endswith(";") and "{" not in text:
            return  # a forward declaration
        elif self.owner is None:
            self.found.append(made)
        elif self.public:
            self.owner.members.append(made)

    def without_body(self, text: str) -> str:
        depth = text.count("{") - text.count("}")
        if "{" not in text:
            return text
        is_function = "(" in text.partition("{")[0]
        while depth > 0:
            line = split_remark(next(self.lines).strip())[0]
            depth += line.count("{") - line.count("}")
            text += "\n  " + line if not is_function else ""
        return text.partition("{")[0].rstrip() + ";" if is_function else text


def split_remark(line: str) -> tuple[str, str]:
    """A line without its comment, and the comment if it documents the line."""
    text, mark, remark = line.partition("///<")
    if mark:
        return text.rstrip(), remark.strip()
    return line.partition(" // ")[0].rstrip(), ""


def is_complete(text: str) -> bool:
    if text.count("(") > text.count(")"):
        return False
    if text.endswith((",", ":", "=", "||", "&&", ">", "const")):
        return text.endswith(">") and not text.startswith("template")
    return text.endswith((";", "{", "}"))
