"""Where a text is said to stand: the literal in the caller's file, however that file is written."""

import importlib.util
import linecache

import pytest

import kernwright as kw
from kernwright._jit.source import locate

KERNEL = "__global__ void k(float* x) {{ // {mark}\n    x[0] = 1;\n}}\n"
HEAD = "from kernwright._jit.source import locate\nimport kernwright as kw\n"
WHERE = "def where():\n    return locate(TEXT, 0)\ndef ask():\n    return kw.kernel(TEXT)\n"
TAIL = '"""\n' + WHERE


def place(tmp_path, source, encoding="utf-8", newline="\n"):
    """What locate() says in a file of that text."""
    path = tmp_path / "kernels.py"
    path.write_bytes(source.replace("\n", newline).encode(encoding))
    spec = importlib.util.spec_from_file_location("kernels", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = module.where()
    assert found.text == module.TEXT
    asked = module.ask()._program
    assert (asked.source_name, asked.first_line) == (found.name, found.first_line)
    assert module.ask()._program is asked
    assert found.name in (str(path), "<string>")
    return found


@pytest.mark.parametrize(
    ("encoding", "newline", "mark"),
    [
        ("utf-8", "\n", "plain"),
        ("utf-8", "\n", "gr\u00f6\u00dfer"),
        ("latin-1", "\n", "gr\u00f6\u00dfer"),
        ("utf-8", "\r\n", "plain"),
        ("utf-8", "\r\n", "gr\u00f6\u00dfer"),
        ("latin-1", "\r\n", "gr\u00f6\u00dfer"),
        ("utf-8", "\r", "plain"),
        ("utf-8-sig", "\n", "plain"),
    ],
)
def test_literal(tmp_path, encoding, newline, mark):
    cookie = "# coding: latin-1\n" if encoding == "latin-1" else "# a comment\n"
    source = cookie + HEAD + 'TEXT = """' + KERNEL.format(mark=mark) + TAIL
    assert place(tmp_path, source, encoding, newline).first_line == 4


def test_nearest_above_the_call(tmp_path):
    twice = 'TEXT = """' + KERNEL.format(mark="twice") + '"""\n'
    source = HEAD + twice + twice + WHERE + twice
    assert place(tmp_path, source).first_line == 7


def test_dedented(tmp_path):
    source = (
        "import textwrap\n" + HEAD + 'TEXT = textwrap.dedent("""\n'
        "    __global__ void k(float* x) {\n      x[0] = 1;\n    }\n"
        + TAIL.replace('"""', '""")', 1)
    )
    assert place(tmp_path, source).first_line == 4


@pytest.mark.parametrize(
    "text", ['"__global__ void k() {}\\n" * 2', '"__global__ void k() { int " + "i; }"']
)
def test_put_together(tmp_path, text):
    source = HEAD + f"TEXT = {text}\n" + WHERE
    found = place(tmp_path, source)
    assert (found.name, found.first_line) == ("<string>", 1)


def test_passed_on_by_a_helper(tmp_path):
    helper = tmp_path / "helper.py"
    helper.write_text(
        "from kernwright._jit.source import locate\ndef ask(t):\n    return locate(t, 0)\n"
    )
    spec = importlib.util.spec_from_file_location("helper", helper)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = module.ask("__global__ void in_a_helper() {}")
    assert found.name == __file__
    with open(__file__, encoding="utf-8") as file:
        line = file.read().splitlines()[found.first_line - 1]
    assert "in_a_helper" in line


def test_without_a_file():
    space = {"locate": locate}
    exec(compile("found = locate('__global__ void nowhere'  '() {}', 0)", "<made>", "exec"), space)
    assert (space["found"].name, space["found"].first_line) == ("<string>", 1)


def test_what_an_interactive_session_keeps():
    lines = [
        "# typed\n",
        "text = '__global__ void typed() {}'\n",
        "found = locate(text, 0)\n",
        "made = kw.kernel(text)._program\n",
    ]
    linecache.cache["<cell 7>"] = (sum(map(len, lines)), None, lines, "<cell 7>")
    space = {"locate": locate, "kw": kw}
    exec(compile("".join(lines), "<cell 7>", "exec"), space)
    del linecache.cache["<cell 7>"]
    assert (space["found"].name, space["found"].first_line) == ("<cell 7>", 2)
    assert (space["made"].source_name, space["made"].first_line) == ("<cell 7>", 2)


def test_a_text_that_no_file_can_hold():
    found = locate("__global__ void k() {} // \ud800", 0)
    assert (found.name, found.first_line) == ("<string>", 1)


def test_a_kernel_passed_on_by_helpers(tmp_path):
    # The text stands in none of their files, and this one is the first beyond them.
    space = {"kw": kw}
    exec(compile("def ask(t): return kw.kernel(t)", "<helper>", "exec"), space)
    program = space["ask"]("__global__ void beyond_helpers() {}")._program
    assert program.source_name == __file__
    with open(__file__, encoding="utf-8") as file:
        assert "beyond_helpers" in file.read().splitlines()[program.first_line - 1]


@pytest.mark.parametrize("text", ["", "  \n"])
def test_a_blank_text_is_refused(text):
    with pytest.raises(kw.InvalidArgument):
        kw.kernel(text)
    with pytest.raises(kw.InvalidArgument):
        kw.kernel(text, "k")


@pytest.mark.parametrize("compiler", [kw.kernel, kw.module, kw.Program])
def test_a_text_with_a_lone_surrogate_is_refused(compiler):
    with pytest.raises(kw.InvalidArgument, match="surrogate at index 26"):
        compiler("__global__ void k() {} // \ud800")
