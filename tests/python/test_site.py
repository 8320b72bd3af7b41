"""The documentation site: every page is made, and its links lead somewhere."""

import importlib.util
import json
import pathlib
import re
import subprocess
import sys

import pytest

import kernwright as kw

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "site" / "make_site.py"
LINK = re.compile(r"(?<![!\\])\[[^\]]*\]\(([^)#\s]+)")
CODE = re.compile(r"^```.*?^```|`[^`]*`", re.DOTALL | re.MULTILINE)
FOREIGN = re.compile(r"""<(?:script|link|img|iframe)[^>]+(?:src|href)=["']?https?://""")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("site")
    subprocess.run([sys.executable, SCRIPT, made, "--pages-only"], check=True, timeout=200)
    return made


def pages_of(nav):
    for each in nav:
        inner = each if isinstance(each, str) else next(iter(each.values()))
        if isinstance(inner, str):
            yield inner
        else:
            yield from pages_of(inner)


def test_the_navigation_has_every_page_once(folder):
    named = list(pages_of(json.loads((folder / "mkdocs.yml").read_text())["nav"]))
    pages = folder / "pages"
    there = {path.relative_to(pages).as_posix() for path in pages.rglob("*.md")}
    assert len(named) == len(set(named))
    assert set(named) == there
    assert len(there) > 80


def test_links_lead_to_pages(folder):
    pages = folder / "pages"
    for page in pages.rglob("*.md"):
        for target in LINK.findall(CODE.sub("", page.read_text())):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_reference_has_every_public_name(folder):
    text = "".join(p.read_text() for p in (folder / "pages" / "reference").glob("*.md"))
    for name in kw.__all__:
        if not isinstance(getattr(kw, name), type(kw)) and name != "__version__":
            assert f"{{#kw.{name}}}" in text or f"{{#kw.errors.{name}}}" in text, name
    assert "kw.zeros(" in text and "**`Array.astype(dtype: Any, *, copy: bool = True)" in text
    assert "kernwright._core" not in text


def test_the_reference_of_headers(folder):
    text = (folder / "pages" / "reference" / "cpp_core.md").read_text()
    assert "### Stream\n" in text and "void wait(const Event& event) const;" in text
    assert "the host does not" in text  # the comment of wait()
    assert "capture_id_" not in text and "struct Box" not in text  # what is private


@pytest.mark.skipif(importlib.util.find_spec("material") is None, reason="the extra docs")
def test_it_builds_and_takes_nothing_from_elsewhere(folder):
    built = subprocess.run(
        [sys.executable, SCRIPT, folder], capture_output=True, text=True, timeout=280
    )
    assert built.returncode == 0, built.stdout + built.stderr
    for page in (folder / "site").rglob("*.html"):
        assert not FOREIGN.search(page.read_text()), page
