"""The formatters and checkers of the project find nothing to complain about."""

import importlib.util
import pathlib
import subprocess
import sys

import pytest

BIN = pathlib.Path(sys.executable).parent


def run(root, *command):
    result = subprocess.run(command, cwd=root, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


def test_clang_format(root, tracked):
    files = [str(p) for p in tracked if p.suffix in {".h", ".cpp"}]
    run(root, str(BIN / "clang-format"), "--dry-run", "--Werror", *files)


def test_ruff(root):
    run(root, str(BIN / "ruff"), "check", ".")


def test_ruff_format(root):
    run(root, str(BIN / "ruff"), "format", "--check", ".")


def test_mypy(root):
    run(root, str(BIN / "mypy"), "bindings/python/kernwright")


def test_spelling(root, tracked):
    """Of all but the tests; these misspell on purpose."""
    texts = {".md", ".py", ".pyi", ".h", ".cpp", ".cu", ".cuh", ".cmake", ".toml", ".sh"}
    files = [str(p) for p in tracked if p.suffix in texts and p.parts[0] != "tests"]
    run(root, str(BIN / "codespell"), "--toml", "pyproject.toml", *files)


def test_the_picture_of_the_architecture_is_fresh(root):
    run(root, sys.executable, "scripts/architecture_picture.py", "--check")


@pytest.mark.parametrize(
    "extra",
    ["ray", "mcp", "shtab", "matplotlib", "rich", "material", "tokenizers", "jinja2", "anthropic"],
)
def test_no_test_is_skipped_for_want_of_an_extra(extra):
    assert importlib.util.find_spec(extra) is not None, "make setup"


def test_shell_scripts_parse(root, tracked):
    for path in tracked:
        if path.suffix == ".sh" or path.as_posix() == ".ci/run":
            run(root, "bash", "-n", str(path))
