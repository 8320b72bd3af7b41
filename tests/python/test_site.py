"""The documentation site: every page is made, its links lead somewhere, it reads well in a browser.

It is built as `make docs` does, strictly, and without the network where the system allows that.
"""

import fcntl
import functools
import html.parser
import http.server
import importlib
import importlib.util
import json
import pathlib
import re
import shutil
import subprocess
import sys
import threading

import browser
import pytest

import kernwright as kw

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "site" / "make_site.py"
LINK = re.compile(r"(?<![!\\])\[[^\]]*\]\(([^)#\s]+)")
CODE = re.compile(r"^```.*?^```|`[^`]*`", re.DOTALL | re.MULTILINE)
FOREIGN_STYLE = re.compile(r"""(?:@import\s+|url\()["']?(?:https?:)?//""")
CAN_BUILD = importlib.util.find_spec("material") is not None
WIDTHS = (1200, 480)

needs_the_site = pytest.mark.skipif(not CAN_BUILD, reason="the extra docs is not installed")
needs_a_browser = pytest.mark.skipif(browser.find() is None, reason=browser.WHY_NONE)


def without_network():
    """What goes before a command to keep the network from it, where the system lets us."""
    command = ["unshare", "--map-root-user", "--net"]
    found = shutil.which(command[0]) is not None
    if found and subprocess.run([*command, "true"], capture_output=True).returncode == 0:
        return command
    return []


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """pages/, and where mkdocs is installed site/: made once for all processes of a test run."""
    shared = tmp_path_factory.getbasetemp()
    if shared.name.startswith("popen-"):  # of one of several processes
        shared = shared.parent
    made = shared / "kernwright-site"
    with open(shared / "kernwright-site.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            made.mkdir()
            options = [] if CAN_BUILD else ["--pages-only"]
            command = [*without_network(), sys.executable, SCRIPT, made, *options]
            try:
                built = subprocess.run(command, capture_output=True, text=True, timeout=800)
                said = f"{built.returncode}\n{built.stdout}{built.stderr}"
            except subprocess.TimeoutExpired as error:
                said = str(error)
            (made / "said").write_text(said)
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


def test_the_index_has_every_public_name(folder):
    text = (folder / "pages" / "reference" / "index_a_z.md").read_text()
    for name in kw.__all__:
        if not isinstance(getattr(kw, name), type(kw)) and name != "__version__":
            assert f"[`kw.{name}`](" in text or f"[`kw.errors.{name}`](" in text, name
    for name in ("kw.linalg.solve", "kw.torch.RMSNorm", "Array.astype", "Kernel.forall"):
        assert f"[`{name}`](" in text, name
    rows = [line for line in text.splitlines() if line.startswith("| [")]
    assert len(rows) > 600 and len(set(rows)) == len(rows)


def test_records_of_measurements_stand_together(folder):
    nav = json.loads((folder / "mkdocs.yml").read_text())["nav"]
    (records,) = [part for part in nav if next(iter(part)).startswith("How it works")]
    assert {"figures.md", "operations_speed.md", "driver_behaviour.md"} <= set(pages_of([records]))
    assert (ROOT / "docs" / "figures.md").read_text().count("\n## ") >= 8


def test_the_reference_of_headers(folder):
    text = (folder / "pages" / "reference" / "cpp_core.md").read_text()
    assert "### Stream\n" in text and "void wait(const Event& event) const;" in text
    assert "the host does not" in text  # the comment of wait()
    assert "capture_id_" not in text and "struct Box" not in text  # what is private


def test_the_reference_has_every_name_of_every_module(folder):
    site = importlib.util.spec_from_file_location(
        "python_reference", SCRIPT.with_name("python_reference.py")
    )
    reference = importlib.util.module_from_spec(site)
    site.loader.exec_module(reference)
    for module in reference.MODULES:
        text = (folder / "pages" / "reference" / f"{module.replace('.', '_')}.md").read_text()
        public = getattr(importlib.import_module(f"kernwright.{module}"), "__all__", ())
        for name in public:
            has_page = f"{module}.{name}" in reference.MODULES
            assert has_page or f"{{#kw.{module}.{name}}}" in text, f"kw.{module}.{name}"


def test_the_reference_of_torch(folder):
    text = (folder / "pages" / "reference" / "torch.md").read_text()
    assert text.count("{#kw.torch.") > 35
    assert "kw.torch.swiglu(gate: torch.Tensor, up: torch.Tensor | None = None)" in text
    assert "**`RMSNorm.forward(x: torch.Tensor, residual: torch.Tensor | None = None)" in text
    assert "kw.torch.Rope(\n    dim: int,\n" in text
    assert "_TORCHS" not in text


# ---- the pages as HTML


class Anchors(html.parser.HTMLParser):
    """What a page names: its own places, links to others, and what it loads at once."""

    def __init__(self, text):
        super().__init__()
        self.places, self.links, self.loaded = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        told = dict(attributes)
        self.places.update(filter(None, (told.get("id"), told.get("name"))))
        if tag == "a" and told.get("href"):
            self.links.append(told["href"])
        if tag == "link":
            self.loaded.append(told["href"])
        if told.get("src"):
            self.loaded.append(told["src"])


@pytest.fixture(scope="module")
def read(folder):
    """All pages of the site by their path. 404.html is for servers alone."""
    site = folder / "site"
    paths = [path for path in site.rglob("*.html") if path.name != "404.html"]
    return {path: Anchors(path.read_text(encoding="utf-8")) for path in paths}


@needs_the_site
def test_it_builds_without_a_warning(folder):
    assert (folder / "said").read_text().strip() == "0"


@needs_the_site
def test_every_page_of_docs_is_on_the_site(folder, read):
    made = {path.relative_to(folder / "site").as_posix() for path in read}
    written = {path.stem for path in (ROOT / "docs").glob("*.md")} - {"index"}
    assert {f"{name}.html" for name in written} <= made
    assert {"index.html", "all_pages.html", "changelog.html", "contributing.html"} <= made
    assert len(made) == len(list((folder / "pages").rglob("*.md")))


@needs_the_site
def test_links_and_anchors_of_the_site_lead_somewhere(folder, read):
    for page, named in read.items():
        for link in (*named.links, *named.loaded):
            if re.match(r"[a-z]+:", link):
                continue
            to, _, anchor = link.partition("#")
            path = (page.parent / to).resolve() if to else page
            assert path.exists(), f"{page.name}: {link}"
            if anchor and path in read:
                assert anchor in read[path].places, f"{page.name}: {link}"


@needs_the_site
def test_the_site_takes_nothing_from_elsewhere(folder, read):
    for page, named in read.items():
        for link in named.loaded:
            assert not re.match(r"(?:[a-z]+:)?//", link), f"{page.name}: {link}"
    for style in (folder / "site").rglob("*.css"):
        assert not FOREIGN_STYLE.search(style.read_text()), style.name


# ---- the pages in a browser


@pytest.fixture
def view(tmp_path):
    page = browser.Browser(browser.find(), tmp_path / "profile")
    yield page
    page.close()


@needs_the_site
@needs_a_browser
def test_every_page_fits_its_window(folder, view, read):
    """On a wide screen and on a narrow one, and the console has nothing to say."""
    wrong = []
    widths = WIDTHS
    view.resize(widths[0])
    for path in sorted(read):
        view.go(path.as_uri())
        for width in widths:
            if width != widths[0]:
                view.resize(width)
            if over := view.too_wide():
                wrong.append(f"{path.name} at {width}: {over}")
        widths = widths[::-1]  # the next page is loaded at the last width
        wrong += [f"{path.name}: {each}" for each in view.problems]
        view.problems.clear()
    assert not wrong, "\n".join(wrong)
    assert all(url.startswith(("file:", "data:", "blob:", "about:")) for url in view.requests)


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


@pytest.fixture
def server(folder):
    """The address of the site on a server of this host."""
    handler = functools.partial(Quiet, directory=folder / "site")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


def follow(view, link):
    """Clicks a link that can be seen, as a reader does, and waits for its page."""
    shown = f"[...document.querySelectorAll({link!r})].find((a) => a.checkVisibility())"
    target = view.wait_for(f"({shown})?.href")
    view.load(lambda: view.ask(f"{shown}.click()"))
    assert view.ask("location.href") == target
    return target


def search(view, words):
    """The first results of the search box."""
    view.ask("document.querySelector('[data-md-toggle=search]').click()")
    view.ask(
        "((box) => { box.focus(); box.value = " + repr(words) + ";"
        " box.dispatchEvent(new Event('input', { bubbles: true })) })"
        "(document.querySelector('.md-search__input'))"
    )
    found = "[...document.querySelectorAll('.md-search-result__link')].map((a) => a.href)"
    return view.wait_for(f"((found) => found.length ? found : null)({found})")


@needs_the_site
@needs_a_browser
@pytest.mark.parametrize(("place", "width"), [("server", 1280), ("disk", 1200), ("server", 480)])
def test_a_reader_finds_the_way(folder, view, server, width, place):
    home = server if place == "server" else (folder / "site").as_uri()
    view.resize(width)
    view.go(f"{home}/index.html")
    title = view.ask("document.querySelector('h1').textContent")
    assert title.startswith("Kernwright")
    has_tabs = view.ask("document.querySelector('.md-tabs').checkVisibility()")
    assert has_tabs == (width >= 1200)
    if not has_tabs:  # the navigation is in a drawer
        view.ask("document.querySelector('label.md-header__button[for=__drawer]').click()")
        view.wait_for("document.querySelector('[data-md-toggle=drawer]').checked")
        assert follow(view, ".md-nav--primary a[href*='install.html']").endswith("install.html")
    else:
        assert "reference/" in follow(view, ".md-tabs a[href*='reference/']")
        assert follow(view, ".md-nav--primary a[href*='arrays.html']").endswith("arrays.html")
    assert view.ask("document.querySelector('h1').textContent") != title
    if has_tabs:  # the pages of the section stand beside the text
        assert view.ask("document.querySelector('.md-sidebar--primary').checkVisibility()")
        assert view.ask("document.querySelector('.md-sidebar--primary')"
                        ".getBoundingClientRect().left") >= 0  # fmt: skip
    assert any("reference/kernels.html" in each for each in search(view, "LaunchConfig"))
    assert not view.problems
    assert all(each.startswith((home, "data:", "blob:", "about:")) for each in view.requests)


@needs_the_site
@needs_a_browser
def test_search_finds_the_page_for_users_first(folder, view, server):
    for words, wanted in (
        ("race", "checks.html"),
        ("time a kernel", "measuring.html"),
        ("torch", ("interoperability.html", "torch.html")),
        ("forall", ("launching.html", "reference/kernels.html")),
        ("asnumpy", ("differences.html", "moving.html")),
        ("cache", ("cache.html",)),
        ("tune", ("tuning.html",)),
    ):
        view.go(f"{server}/index.html")
        first = search(view, words)[0].partition("#")[0].partition("?")[0]
        assert first.endswith(wanted), f"{words}: {first}"


@needs_the_site
@needs_a_browser
def test_the_copy_button_covers_no_code_on_a_narrow_screen(folder, view):
    view.resize(480)
    view.go((folder / "site" / "launching.html").as_uri())
    covered = view.wait_for(
        """((blocks) => blocks.length < 3 ? null : {found: blocks.filter((block) => {
            const button = block.querySelector('.md-clipboard, .md-code__button');
            const range = document.createRange();
            range.selectNodeContents(block.querySelector('code'));
            const of = button.getBoundingClientRect();
            return [...range.getClientRects()].some((text) => text.width > 0 &&
                text.top < of.bottom && text.bottom > of.top &&
                text.left < of.right && text.right > of.left);
        }).map((block) => block.textContent.slice(0, 60))})(
            [...document.querySelectorAll('.highlight')].filter((block) =>
                block.querySelector('.md-clipboard, .md-code__button')))"""
    )
    assert covered == {"found": []}
