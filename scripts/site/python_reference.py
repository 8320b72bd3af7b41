"""The Python reference as Markdown pages: docstrings and signatures of all public names."""

from __future__ import annotations

import ast
import importlib
import inspect
import pathlib
import types
from collections.abc import Iterator
from typing import Any

import kernwright as kw

KERNELS = (
    "kernel module Kernel Module Program ProgramOptions ObjectCode LaunchConfig In Out InOut "
    "Pointer strided checked slices slice_blocks warmup lint pack use_pack"
)
DEVICES = (
    "devices current_device current_stream synchronize Device Partition Stream Event Graph "
    "GraphNode GraphPool Transfer TransferEngine libcuda_path"
)
ARRAYS = (
    "Array empty empty_like zeros zeros_like ones ones_like full full_like arange linspace "
    "asarray from_dlpack pinned CudaArray Texture Surface TensorMap"
)
WATCHING = "trace line_profile profile annotate time time_kernel"
JUDGING = "judge Judge Task Inputs Verdict"
# The title of each page, and its names of `kernwright`.
TOPICS = {
    "kernels": ("Kernels and launches", KERNELS),
    "devices": ("Devices, streams, graphs", DEVICES),
    "arrays": ("Arrays, textures, tensor maps", ARRAYS),
    "watching": ("Traces, profiles, timing", WATCHING),
    "judging": ("Judging", JUDGING),
}
MODULES = (
    *("checks", "memory", "cache", "errors", "tune", "bench", "nn", "nn.quant"),
    *("linalg", "fft", "random", "optim", "train", "schedule", "llm", "llm.models"),
    *("tune.accuracy", "tune.observers", "tune.observers.nvml", "tune.searchspace"),
    *("tune.strategies.common", "tune.strategies.wrapper", "tune.file_utils", "tune.util"),
)
# Long names of the stubs, with their short forms.
ALIASES = {
    "_core.": "",
    "_DeviceLike": "Device | int | str | None",
    "_Extents": "int | tuple[int, ...]",
    "_Shape": "int | Sequence[int]",
    "_Ints": "int | Sequence[int]",
}
FUNCTIONS = "functions"  # the page of the array library
VALUES = (property, types.MemberDescriptorType)  # members that are no methods


def pages() -> dict[str, str]:
    """Markdown by the name of the page, in the order of the site's navigation."""
    made = {}
    for name, (title, names) in TOPICS.items():
        body = "".join(entry(f"kw.{each}", getattr(kw, each)) for each in names.split())
        made[name] = f"# {title}\n\n{body}"
    made[FUNCTIONS] = functions_page()
    for name in MODULES:
        made[name.replace(".", "_")] = module_page(name)
    missing = set(kw.__all__) - told()
    if missing:
        raise SystemExit(f"no page of the reference has {', '.join(sorted(missing))}")
    return made


def told() -> set[str]:
    """The names of `kernwright` on a page."""
    by_topic = {name for _, names in TOPICS.values() for name in names.split()}
    by_module = {name for names in kw._TOPICS.values() for name in names}
    exceptions = set(importlib.import_module("kernwright.errors").__dict__)
    return by_topic | by_module | exceptions | set(MODULES) | {"__version__"}


def functions_page() -> str:
    """The array library by module; the modules' docstrings are the headings."""
    parts = ["# Functions of arrays\n\n"]
    for module, names in kw._TOPICS.items():
        doc = importlib.import_module(f"kernwright.{module}").__doc__ or module
        parts.append(f"## {doc.splitlines()[0].rstrip('.')}\n\n")
        parts += [entry(f"kw.{name}", getattr(kw, name)) for name in names]
    return "".join(parts)


def module_page(name: str) -> str:
    module = importlib.import_module(f"kernwright.{name}")
    public = getattr(module, "__all__", None) or list_exceptions(module)
    body = [entry(f"kw.{name}.{each}", getattr(module, each)) for each in public]
    return f"# kw.{name}\n\n{markdown(inspect.getdoc(module) or '')}\n\n{''.join(body)}"


def list_exceptions(module: types.ModuleType) -> list[str]:
    return [name for name, value in vars(module).items() if inspect.isclass(value)]


def entry(path: str, value: Any) -> str:
    """A heading, the signature, the docstring; for a class also its members."""
    if isinstance(value, types.ModuleType) and not callable(value):
        return ""
    name = path.rpartition(".")[2]
    parts = [f"### {name} {{#{path}}}\n\n"]
    described = inspect.isclass(value) or callable(value)
    if described and not is_exception(value):
        text = f"class {path}" if is_made_by_others(value) else f"{path}{signature(value, name)}"
        parts.append(f"```python\n{text}\n```\n\n")
    doc = inspect.getdoc(value) if described else f"`{value!r}`"
    parts.append(f"{markdown(doc or '')}\n\n")
    if inspect.isclass(value):
        parts += [member(value, each) for each in members(value)]
    return "".join(parts)


def is_exception(value: Any) -> bool:
    return inspect.isclass(value) and issubclass(value, BaseException)


def is_made_by_others(value: Any) -> bool:
    """Whether it is a class of the extension that users cannot construct."""
    is_ours = inspect.isclass(value) and value.__module__ == "kernwright._core"
    return is_ours and value.__name__ not in stubs()


def members(cls: type) -> Iterator[str]:
    if not cls.__module__.startswith("kernwright"):
        return
    for name, value in vars(cls).items():
        is_field = issubclass(cls, tuple) and name in getattr(cls, "_fields", ())
        is_told = callable(value) or isinstance(value, (*VALUES, staticmethod, classmethod))
        if is_told and not name.startswith("_") and not is_field:
            yield name


def member(cls: type, name: str) -> str:
    value, raw = getattr(cls, name), vars(cls)[name]
    doc = markdown(inspect.getdoc(value) or "")
    if isinstance(raw, VALUES):
        return f"**`{cls.__name__}.{name}`**\n:   {indented(doc)}\n\n"
    text = f"{cls.__name__}.{name}{signature(value, f'{cls.__name__}.{name}', not is_static(raw))}"
    return f"**`{text}`**\n:   {indented(doc)}\n\n"


def is_static(raw: Any) -> bool:
    return isinstance(raw, (staticmethod, classmethod)) or inspect.isclass(raw)


def indented(text: str) -> str:
    return text.replace("\n", "\n    ").replace("    \n", "\n") or "-"


def signature(value: Any, name: str, drop_self: bool = False) -> str:
    """ "(x, axis=-1) -> Array", with the annotations as they were written."""
    told_by_stub = stub_signature(value, name)
    try:
        found = told_by_stub or inspect.signature(value)
    except (TypeError, ValueError):
        return "(...)"
    if inspect.isclass(value):
        found = found.replace(return_annotation=inspect.Signature.empty)
    return shown(found, drop_self)


def shown(found: inspect.Signature, drop_self: bool = False) -> str:
    """The signature as text; a long one has a line for each parameter."""
    parameters = list(found.parameters.values())[1 if drop_self else 0 :]
    plain = [each.replace(annotation=written(each.annotation)) for each in parameters]
    made = inspect.Signature(plain, return_annotation=written(found.return_annotation))
    text = str(made)
    return text if len(text) <= 84 else wrapped(made)


class Written:
    """An annotation; its repr() is the text from the source."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def written(annotation: Any) -> Any:
    if annotation is inspect.Signature.empty:
        return annotation
    if isinstance(annotation, str):
        for alias, meaning in ALIASES.items():
            annotation = annotation.replace(alias, meaning)
        return Written(annotation)
    return Written(inspect.formatannotation(annotation))


def wrapped(made: inspect.Signature) -> str:
    """The signature with one parameter a line."""
    lines, kinds = [], list(made.parameters.values())
    for place, each in enumerate(kinds):
        before = kinds[place - 1].kind if place else None
        if each.kind is each.KEYWORD_ONLY and before not in (
            each.KEYWORD_ONLY,
            each.VAR_POSITIONAL,
        ):
            lines.append("*")
        lines.append(str(each))
        after = kinds[place + 1].kind if place + 1 < len(kinds) else None
        if each.kind is each.POSITIONAL_ONLY and after is not each.POSITIONAL_ONLY:
            lines.append("/")
    returned = made.return_annotation
    arrow = "" if returned is inspect.Signature.empty else f" -> {returned!r}"
    return "(\n" + "".join(f"    {line},\n" for line in lines) + f"){arrow}"


def stub_signature(value: Any, name: str) -> inspect.Signature | None:
    """The signature from the stub, with annotations, for objects of the extension."""
    home = str(getattr(value, "__module__", None) or "kernwright._core")
    return stubs().get(name) if home == "kernwright._core" else None


STUBS: dict[str, inspect.Signature] = {}


def stubs() -> dict[str, inspect.Signature]:
    if not STUBS:
        for path in sorted(pathlib.Path(kw.__file__).parent.glob("_core*.pyi")):
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.FunctionDef):
                    STUBS[node.name] = read_signature(node)
                elif isinstance(node, ast.ClassDef):
                    for each in node.body:
                        if isinstance(each, ast.FunctionDef):
                            STUBS[f"{node.name}.{each.name}"] = read_signature(each)
                    made = STUBS.get(f"{node.name}.__init__")
                    if made is not None:
                        STUBS[node.name] = made.replace(parameters=[*made.parameters.values()][1:])
    return STUBS


def read_signature(node: ast.FunctionDef) -> inspect.Signature:
    """The signature in a stub. Its names cannot be resolved, so annotations stay text."""
    plain = ast.FunctionDef(
        name=node.name, args=node.args, body=[ast.Pass()], decorator_list=[],
        returns=node.returns, lineno=1, col_offset=0,
    )  # fmt: skip
    text = "from __future__ import annotations\n" + ast.unparse(ast.fix_missing_locations(plain))
    space: dict[str, Any] = {}
    exec(text, space)
    return inspect.signature(space[node.name])


def markdown(doc: str) -> str:
    """A docstring as Markdown: examples as code, and special characters escaped."""
    parts: list[str] = []
    for paragraph in doc.split("\n\n"):
        if paragraph.lstrip().startswith(">>>"):
            parts.append(f"```pycon\n{paragraph}\n```")
        else:
            parts.append(escaped(paragraph))
    return "\n\n".join(parts)


def escaped(paragraph: str) -> str:
    """Escapes the text outside of `code`."""
    pieces = paragraph.replace("``", "`").split("`")
    for place in range(0, len(pieces), 2):
        for mark in "\\*_[":
            pieces[place] = pieces[place].replace(mark, "\\" + mark)
        pieces[place] = pieces[place].replace("<", "&lt;")
    return "`".join(pieces)
