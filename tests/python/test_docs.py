"""The pages: their code runs as it stands, their links lead somewhere, tables are fresh."""

import ast
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import textwrap

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
# A block of what the block above it prints, with "..." for anything.
WITH_OUTPUT = re.compile(
    r"^```python\n(.*?)^```$(?:\n+```output\n(.*?)^```$)?", re.DOTALL | re.MULTILINE
)
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
ANCHOR = re.compile(r"\]\(([^)#\s:]*\.md|)#([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
RAISES = re.compile(r"#\s+([A-Z]\w*(?:Error|Failed|Fault|NotFound|Bounds|Argument)): ")
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.DOTALL | re.MULTILINE)
WITH_CODE = [page for page in PAGES if BLOCK.search(page.read_text())]


def blocks(page):
    return BLOCK.findall(page.read_text())


def runnable(code):
    """The code, with each statement in a `with raises` if its last line says "# SomeError: ..."."""
    lines = code.splitlines()
    for statement in reversed(ast.parse(code).body):
        raises = RAISES.search(lines[statement.end_lineno - 1])
        if raises is None:
            continue
        begin, end = statement.lineno - 1, statement.end_lineno
        lines[begin:end] = [f"with raises({raises[1]!r}):"] + [f"    {x}" for x in lines[begin:end]]
    return "\n".join(lines)


PRELUDE = textwrap.dedent(
    """
    import contextlib, doctest, io, sys
    import kernwright

    @contextlib.contextmanager
    def raises(name):
        try:
            yield
        except Exception as error:
            assert name in [each.__name__ for each in type(error).__mro__], repr(error)
        else:
            raise AssertionError(f"no {name}")

    space = {"__name__": "__main__", "raises": raises}

    def run(code, name, expected):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(code, name, "exec"), space)
        if expected is None or not kernwright.current_device().is_simulated:
            return
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        is_same = doctest.OutputChecker().check_output(expected, out.getvalue(), flags)
        assert is_same, f"{name} printed\\n{out.getvalue()}"
    """
)


# Packages of extras, by the page that shows them.
EXTRAS = {
    "chat": ("tokenizers", "jinja2"),
    "language_models": ("tokenizers", "llguidance"),
}
# Pages about the simulated device alone.
OF_SIMULATED = ("checks", "trace_and_profile")


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: page.stem)
def test_code_runs_as_it_stands(page, tmp_path):
    """The blocks of a page, one after the other, as a reader pastes them; they print what the page
    says."""
    code = PRELUDE
    for module in EXTRAS.get(page.stem, ()):
        pytest.importorskip(module)
    for number, (block, output) in enumerate(WITH_OUTPUT.findall(page.read_text())):
        for module in re.findall(r"^import (torch|ray|cupy)\b", block, re.MULTILINE):
            if importlib.util.find_spec(module) is None:
                pytest.skip(f"{page.name} needs {module}")
        name = f"{page.name}, block {number}"
        code += f"run({runnable(block)!r}, {name!r}, {output or None!r})\n"
    environment = {**os.environ, "KERNWRIGHT_SIM_CAPABILITY": "9.0"}  # has tensor maps
    if page.stem in OF_SIMULATED:
        environment["KERNWRIGHT_DEVICE"] = "sim"
    ended = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr[-2000:]


def test_pages_have_code():
    assert len(WITH_CODE) > 20
    assert sum(len(blocks(page)) for page in WITH_CODE) > 35


def test_outputs_belong_to_the_block_above():
    for page in PAGES:
        text = page.read_text()
        outputs = [output for _, output in WITH_OUTPUT.findall(text) if output]
        assert len(outputs) == text.count("```output\n"), page.name
    assert "```output\n" in (ROOT / "docs" / "ten_minutes.md").read_text()


def test_a_page_that_is_wrong_is_noticed():
    assert runnable("f(1)  # fine") == "f(1)  # fine"
    assert runnable("x = 1\nf(x)  # TypeError: no") == (
        "x = 1\nwith raises('TypeError'):\n    f(x)  # TypeError: no"
    )


PROJECT = [
    ROOT / f"{name}.md" for name in ("ARCHITECTURE", "CHANGELOG", "CONTRIBUTING", "SECURITY")
]


@pytest.mark.parametrize("page", [*PAGES, *PROJECT], ids=lambda page: page.stem)
def test_links_lead_somewhere(page):
    for target in LINK.findall(CODE.sub("", page.read_text())):
        if "://" not in target and target != "...":  # k[grid, block](...)
            assert (page.parent / target).exists(), target


def anchors(page):
    """The headings of a page as links name them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    plain = [re.sub(r"[^\w\- ]", "", heading.lower()) for heading in HEADING.findall(text)]
    return {heading.replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_anchors_are_headings(page):
    for target, anchor in ANCHOR.findall(CODE.sub("", page.read_text())):
        assert anchor in anchors(page.parent / target if target else page), f"{target}#{anchor}"


def test_the_index_has_every_page():
    named = set(LINK.findall((ROOT / "docs" / "index.md").read_text()))
    there = {page.name for page in (ROOT / "docs").glob("*.md")} - {"index.md"}
    assert named == there


def test_the_environment_page_is_fresh():
    spec = importlib.util.spec_from_file_location("page", ROOT / "scripts" / "environment_page.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.PAGE.read_text() == module.page(), "run scripts/environment_page.py"


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 150
