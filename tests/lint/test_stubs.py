"""Stubs of the extension name the arguments that its bindings name, in their order."""

import ast
import re
from pathlib import Path

BINDINGS = Path(__file__).parents[2] / "bindings"
# A quoted string, or a bracket: what tells where a call ends.
TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|[()]')
ARGUMENT = re.compile(r'py::arg\("(\w+)"\)(\s*=)?')


def end_of_call(text, begin):
    """Where the call ends whose opening bracket is in front of `begin`."""
    depth = 1
    for token in TOKEN.finditer(text, begin):
        depth += {"(": 1, ")": -1}.get(token[0], 0)
        if depth == 0:
            return token.end()
    raise ValueError("a call without an end")


def bound_arguments(text):
    """Of each private function: its name, and the names of arguments, True with a default."""
    for match in re.finditer(r'\bm\.def\(\s*"(_\w+)"', text):
        body = text[match.end() : end_of_call(text, match.end())]
        yield match[1], [(name, bool(default)) for name, default in ARGUMENT.findall(body)]


def stub_arguments(arguments):
    plain = [*arguments.posonlyargs, *arguments.args]
    needed = len(plain) - len(arguments.defaults)
    return [(each.arg, i >= needed) for i, each in enumerate(plain)] + [
        (each.arg, default is not None)
        for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    ]


def disagreements(bound, stubs):
    """A line for each function without a stub, or whose stub has other names or defaults."""
    for name, arguments in bound:
        if name not in stubs:
            yield f"{name} has no stub"
        elif arguments and arguments != stubs[name]:
            yield f"{name}: the binding has {arguments}, its stub {stubs[name]}"


def test_stubs_have_the_arguments_of_bindings():
    bound = [
        each
        for path in sorted(BINDINGS.rglob("*.cpp"))
        for each in bound_arguments(path.read_text())
    ]
    stubs = {
        node.name: stub_arguments(node.args)
        for path in sorted((BINDINGS / "python" / "kernwright").glob("_core*.pyi"))
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef)
    }
    assert len(bound) > 100
    assert sum(bool(arguments) for _, arguments in bound) > 40
    assert list(disagreements(bound, stubs)) == []


def test_a_stub_with_another_argument_is_found():
    bound = list(bound_arguments(
        'm.def("_f", &f, py::arg("a"), py::arg("b") = "(");\n'
        '  m.def("_g", &g, py::arg("a") = py::none());\n  m.def("_h", [](int) { return 1; });'
    ))  # fmt: skip
    assert bound == [("_f", [("a", False), ("b", True)]), ("_g", [("a", True)]), ("_h", [])]
    text = "def _f(a, b=..., out=None): ...\ndef _g(a=None): ...\ndef _h(x): ..."
    stubs = {node.name: stub_arguments(node.args) for node in ast.parse(text).body}
    assert [line.split(":")[0] for line in disagreements(bound, stubs)] == ["_f"]
    assert list(disagreements([("_i", [])], stubs)) == ["_i has no stub"]
