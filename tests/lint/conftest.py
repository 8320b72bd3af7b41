"""The fixtures of the lints: the repository's own files."""

import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def root():
    return ROOT


@pytest.fixture(scope="session")
def tracked():
    """Paths of the existing files under version control, relative to the root."""
    listing = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    return [pathlib.Path(name) for name in listing.split("\0") if name and (ROOT / name).is_file()]
