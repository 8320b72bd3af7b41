"""Writes the documentation site: the pages of docs, and a reference from docstrings and headers.

python scripts/site/make_site.py FOLDER [--pages-only]

FOLDER gets pages/ (Markdown), mkdocs.yml and, without --pages-only, site/ (HTML by mkdocs with the
material theme). Neither the build nor the finished pages load anything from the network. The pages
work from a disk as from a server.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import cpp_reference
import name_index
import python_reference
import torch_reference

ROOT = pathlib.Path(__file__).resolve().parents[2]
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)#\s]+)(#[^)]*)?\)")
CODE = re.compile(r"(^```.*?^```|`[^`\n]*`)", re.DOTALL | re.MULTILINE)
HEADING = re.compile(r"^\| ([^|]+?) *\| *\|$")
FILE_WORKER = "assets/file_worker.js"
STYLE = "assets/kernwright.css"
PAGE = re.compile(r"\]\((\w+\.md)\)")
# How much a page counts in a search, where not 1: pages for users before the reference of C++, and
# that before records of measurements.
FIRST, GUIDE, CPP, RECORD = 4, 2, 0.1, 0.02
FIRST_PAGES = {
    *("ten_minutes", "launching", "measuring", "arrays", "errors", "checks", "install", "moving"),
    *("cache", "tuning", "interoperability", "differences", "trace_and_profile"),
}
RECORDS = {
    *("figures", "operations_speed", "driver_behaviour", "simulator_speed", "checks_compared"),
    *("ptx_coverage", "changelog", "contributing", "architecture", "all_pages"),
}
# Words of a search end at these, so that "asnumpy" finds cp.asnumpy(x).
SEPARATOR = r"""[\s\-,:!=\[\]()"'/`|]+|\.(?!\d)|&[lg]t;"""
# The theme shows tabs and the sidebar from 1220 pixels on; here from 1100 on (in em of 16 pixels).
BREAKPOINTS = {"76.25em": "68.75em", "76.234375em": "68.734375em"}
# Pages outside of docs, with their place on the site.
OUTSIDE = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "ARCHITECTURE.md": "architecture.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
    "docs/index.md": "all_pages.md",
}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--pages-only", action="store_true")
    arguments = parser.parse_args()
    write_pages(arguments.folder)
    if arguments.pages_only:
        return 0
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--clean"]
    # The theme prints an advertisement for its successor on every run.
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    # NOTE: with --quiet, warnings are no errors even under --strict.
    made = subprocess.run(
        [*command, "-f", str(arguments.folder / "mkdocs.yml")],
        env=environment, check=False, text=True, capture_output=True,
    )  # fmt: skip
    if made.returncode != 0:
        print(made.stdout + made.stderr, file=sys.stderr)
        return made.returncode
    write_index_for_disks(arguments.folder / "site" / "search")
    show_navigation_earlier(arguments.folder / "site" / "assets")
    return 0


def show_navigation_earlier(assets: pathlib.Path) -> None:
    """Moves the width of a window from which on the theme shows the navigation beside the page."""
    counts = dict.fromkeys(BREAKPOINTS, 0)
    for path in (*assets.rglob("*.css"), *assets.rglob("bundle.*.js")):
        text = path.read_text(encoding="utf-8")
        for old, new in BREAKPOINTS.items():
            counts[old] += text.count(old)
            text = text.replace(old, new)
        path.write_text(text, encoding="utf-8")
    if not all(counts.values()):
        raise SystemExit(f"the theme has other breakpoints than {', '.join(BREAKPOINTS)}")


def write_index_for_disks(folder: pathlib.Path) -> None:
    """Wraps the search index in a script: pages opened from a disk may not fetch other files."""
    index = (folder / "search_index.json").read_text(encoding="utf-8")
    (folder / "search_index.js").write_text(f"var __index = {index}\n", encoding="utf-8")


def write_pages(folder: pathlib.Path) -> None:
    pages = folder / "pages"
    shutil.rmtree(pages, ignore_errors=True)
    (pages / "reference").mkdir(parents=True)
    (pages / "tutorial").mkdir()
    for source in sources():
        target = page_path(source)
        text = front_matter(target) + relinked(source, target)
        (pages / target).write_text(text, encoding="utf-8")
    for picture in ("docs/pictures",):
        shutil.copytree(ROOT / picture, pages / "pictures")
    (pages / FILE_WORKER).parent.mkdir()
    for asset in (FILE_WORKER, STYLE):
        name = asset.rpartition("/")[2]
        shutil.copy(pathlib.Path(__file__).with_name(name), pages / asset)
    for name, text in tutorial().items():
        (pages / "tutorial" / f"{name}.md").write_text(text, encoding="utf-8")
    for name, text in python_reference.pages().items():
        (pages / "reference" / f"{name}.md").write_text(text, encoding="utf-8")
    (pages / "reference" / "index_a_z.md").write_text(name_index.page(), encoding="utf-8")
    (pages / "reference" / "torch.md").write_text(torch_reference.page(), encoding="utf-8")
    for name, text in cpp_reference.pages().items():
        text = f"---\nsearch:\n  boost: {CPP}\n---\n{text}"
        (pages / "reference" / f"cpp_{name}.md").write_text(text, encoding="utf-8")
    (folder / "mkdocs.yml").write_text(json.dumps(configuration(), indent=1))


def front_matter(page: str) -> str:
    """The weight of a page in searches."""
    return f"---\nsearch:\n  boost: {boost(page.removesuffix('.md'))}\n---\n"


def boost(page: str) -> float:
    if page in RECORDS:
        return RECORD
    return FIRST if page in FIRST_PAGES else GUIDE


def tutorial() -> dict[str, str]:
    """Markdown by page: an example in Python, and its twin in C++ where there is one."""
    made = {}
    for path in sorted((ROOT / "examples" / "python").glob("[0-9]*.py")):
        text = path.read_text(encoding="utf-8")
        doc = ast.get_docstring(ast.parse(text)) or path.stem
        title, _, rest = doc.partition("\n")
        code = text.partition('"""\n')[2].lstrip("\n") if text.startswith('"""') else text
        parts = [f"# {title.rstrip('.')}\n\n{python_reference.markdown(rest.strip())}\n\n"]
        parts.append(f"`examples/python/{path.name}`\n\n```python\n{code}```\n\n")
        twin = ROOT / "examples" / "cpp" / f"{path.stem}.cpp"
        if twin.exists():
            parts.append(f"## The same in C++\n\n`examples/cpp/{twin.name}`\n\n")
            parts.append(f"```cpp\n{twin.read_text(encoding='utf-8')}```\n")
        made[path.stem] = "".join(parts)
    return made


def sources() -> list[pathlib.Path]:
    outside = [ROOT / name for name in OUTSIDE if (ROOT / name).exists()]
    inside = sorted((ROOT / "docs").glob("*.md"))
    return list(dict.fromkeys([*outside, *inside]))


def page_path(source: pathlib.Path) -> str:
    return OUTSIDE.get(source.relative_to(ROOT).as_posix(), source.name)


def relinked(source: pathlib.Path, target: str) -> str:
    """The text with links to pages rewritten for the site; links to sources become plain text."""
    places = {path: page_path(path) for path in sources()}

    def link(match: re.Match[str]) -> str:
        text, to, anchor = match[1], match[2], match[3] or ""
        if "://" in to:
            return match[0]
        path = (source.parent / to).resolve()
        if path in places:
            return f"[{text}]({places[path]}{anchor})"
        if path.is_relative_to(ROOT / "docs" / "pictures"):
            return f"[{text}](pictures/{path.name})"
        return text

    parts = CODE.split(source.read_text(encoding="utf-8"))
    parts[::2] = [LINK.sub(link, part) for part in parts[::2]]
    return "".join(parts).replace("(docs/pictures/", "(pictures/")


def read_title(page: str) -> str:
    """The page's heading."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return next(line for line in text.splitlines() if line.startswith("# "))[2:]


def guides() -> list[dict[str, object]]:
    """The sections of docs/index.md with their pages."""
    sections: dict[str, list[str]] = {"begin": []}
    current = "begin"
    for line in (ROOT / "docs" / "index.md").read_text(encoding="utf-8").splitlines():
        heading = HEADING.match(line)
        if heading:
            current = heading[1]
        seen = {page for pages in sections.values() for page in pages}
        home = current if line.startswith("|") else "begin"
        sections.setdefault(home, [])
        sections[home] += [p for p in dict.fromkeys(PAGE.findall(line)) if p not in seen]
    return [
        {name[:1].upper() + name[1:]: [{read_title(page): page} for page in pages]}
        for name, pages in sections.items()
        if pages
    ]


def reference() -> list[dict[str, object]]:
    """Pages by language, behind the index of all names."""
    names = {name: title for name, (title, _) in python_reference.TOPICS.items()}
    names[python_reference.FUNCTIONS] = "Functions of arrays"
    python: list[dict[str, str]] = [{t: f"reference/{n}.md"} for n, t in names.items()]
    python += [
        {f"kw.{name}": f"reference/{name.replace('.', '_')}.md"}
        for name in python_reference.MODULES
    ]
    python.append({"kw.torch": "reference/torch.md"})
    cpp = [{title: f"reference/cpp_{name}.md"} for name, title in cpp_reference.TITLES.items()]
    return [{"Index from A to Z": "reference/index_a_z.md"}, {"Python": python}, {"C++": cpp}]


def configuration() -> dict[str, object]:
    """The settings for mkdocs.yml; they are written as JSON, a part of YAML."""
    about = [{name.partition(".")[0].capitalize(): OUTSIDE[name]} for name in list(OUTSIDE)[1:5]]
    begin, *others = guides()
    examples = [f"tutorial/{name}.md" for name in tutorial()]
    features = [
        *("navigation.tabs", "navigation.top", "navigation.footer", "navigation.path"),
        *("toc.follow", "content.code.copy", "search.highlight"),
    ]
    palette = [
        {"media": f"(prefers-color-scheme: {name})", "scheme": scheme, "primary": "blue grey",
         "accent": "light blue", "toggle": {"icon": icon, "name": f"Use the {other} colours"}}
        for name, scheme, icon, other in (
            ("light", "default", "material/weather-night", "dark"),
            ("dark", "slate", "material/weather-sunny", "light"),
        )
    ]  # fmt: skip
    return {
        "site_name": "Kernwright",
        "docs_dir": "pages",
        "site_dir": "site",
        "use_directory_urls": False,
        "theme": {"name": "material", "font": False, "features": features, "palette": palette},
        "plugins": [{"search": {"separator": SEPARATOR}}],
        "extra": {"polyfills": [FILE_WORKER]},
        "extra_css": [STYLE],
        "markdown_extensions": [
            "tables", "attr_list", "def_list", "pymdownx.superfences",
            {"pymdownx.highlight": {"anchor_linenums": False}},
            {"toc": {"permalink": True, "toc_depth": 3}},
        ],
        "nav": [{"Home": "index.md"}, begin, {"Tutorial": examples}, *others,
                {"Reference": reference()}, {"Project": [*about, {"All pages": "all_pages.md"}]}],
        "validation": {"omitted_files": "warn", "links": {"anchors": "warn", "not_found": "warn"}},
    }  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
