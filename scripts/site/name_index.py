"""The index from A to Z: each public name of Python, with the first sentence of its docstring."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from typing import Any, NamedTuple

import python_reference
import torch_reference

import kernwright as kw


class Entry(NamedTuple):
    name: str  # "kw.linalg.solve", "Array.astype()"
    target: str  # the page and its anchor
    says: str


def page() -> str:
    entries = sorted(all_entries(), key=lambda each: (last(each.name).lower(), each.name))
    letters: dict[str, list[Entry]] = {}
    for entry in entries:
        letters.setdefault(last(entry.name)[0].upper(), []).append(entry)
    jumps = " ".join(f"[{letter}](#{letter.lower()})" for letter in letters)
    parts = ["# Index from A to Z\n\n", "All public names of Python, by their last part. "]
    parts.append(f"The search box finds words of the pages, too.\n\n{jumps}\n\n")
    for letter, group in letters.items():
        parts.append(f"## {letter}\n\n| | |\n|---|---|\n")
        parts += [f"| [`{e.name}`]({e.target}) | {e.says} |\n" for e in group]
        parts.append("\n")
    return "".join(parts)


def last(name: str) -> str:
    return name.rpartition(".")[2].lstrip("_")


def all_entries() -> Iterator[Entry]:
    pages = {
        name: topic for topic, (_, names) in python_reference.TOPICS.items()
        for name in names.split()
    }  # fmt: skip
    functions = [name for names in kw._TOPICS.values() for name in names]
    for name in functions:
        yield entry(f"kw.{name}", python_reference.FUNCTIONS, getattr(kw, name))
    for name, topic in pages.items():
        value = getattr(kw, name)
        yield entry(f"kw.{name}", topic, value)
        if inspect.isclass(value):
            yield from members(name, topic, value)
    for module in python_reference.MODULES:
        yield from module_entries(module)
    for name, node in torch_reference.definitions():
        says = first_sentence(torch_reference.docstring(node))
        yield Entry(f"kw.torch.{name}", f"torch.md#kw.torch.{name}", says)


def module_entries(name: str) -> Iterator[Entry]:
    module = importlib.import_module(f"kernwright.{name}")
    public = getattr(module, "__all__", None) or python_reference.list_exceptions(module)
    for each in public:
        value = getattr(module, each)
        if not inspect.ismodule(value):
            yield entry(f"kw.{name}.{each}", name.replace(".", "_"), value)


def entry(path: str, topic: str, value: Any) -> Entry:
    is_told = inspect.isclass(value) or callable(value)
    says = first_sentence(inspect.getdoc(value) or "") if is_told else ""
    anchor = "" if "__" in path else f"#{path}"  # underscores are no part of anchors in Markdown
    return Entry(path, f"{topic}.md{anchor}", says)


def members(owner: str, topic: str, cls: type) -> Iterator[Entry]:
    """Methods and properties have no anchors of their own: the link leads to the class."""
    for name in python_reference.members(cls):
        says = first_sentence(inspect.getdoc(getattr(cls, name)) or "")
        yield Entry(f"{owner}.{name}", f"{topic}.md#kw.{owner}", says)


def first_sentence(doc: str) -> str:
    """Of the first paragraph, as text for a cell of a table."""
    paragraph = " ".join(doc.partition("\n\n")[0].split())
    sentence = paragraph.partition(". ")[0].rstrip(".:")
    if len(sentence) > 110:
        sentence = sentence[:110].rpartition(" ")[0] + " ..."
    if sentence.count("`") % 2:
        sentence += "`"
    return python_reference.escaped(sentence).replace("|", "\\|")
