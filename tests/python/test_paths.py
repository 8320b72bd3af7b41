"""Paths that name no file: null characters, pipes and devices, values that are no path."""

import os
from pathlib import Path

import pytest

import kernwright as kw

TEXT = "__global__ void f(float* o) { o[0] = 1; }"


def takers():
    """Every function that takes a path, as a call with one."""
    code = kw.Program(TEXT).compile("ptx")
    snapshot = kw.memory.snapshot()
    with kw.profile() as profile:
        kw.zeros(3).numpy()
    return {
        "save": code.save,
        "load": kw.ObjectCode.load,
        "kernel": lambda path: kw.kernel(_AsPath(path)),
        "module": lambda path: kw.module(_AsPath(path)),
        "program": lambda path: kw.Program(_AsPath(path)),
        "lint": lambda path: kw.lint(_AsPath(path)),
        "pack": lambda path: kw.pack(path, [TEXT], archs=["compute_80"]),
        "records": lambda path: kw.pack("never", [], archs=["compute_80"], records=[path]),
        "use_pack": kw.use_pack,
        "snapshot": snapshot.save,
        "profile": profile.save_trace,
        "include_dirs": lambda path: kw.kernel(TEXT, include_dirs=[path]).compile(),
    }


class _AsPath(os.PathLike):
    def __init__(self, path):
        self._path = path

    def __fspath__(self):
        return self._path


NAMES = ["save", "load", "kernel", "module", "program", "lint", "pack", "records", "use_pack"]
NAMES += ["snapshot", "profile", "include_dirs"]


@pytest.fixture(scope="module")
def calls():
    found = takers()
    assert list(found) == NAMES
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_null_character_is_refused(calls, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").write_text(TEXT)
    before = (tmp_path / "a").read_bytes()
    with pytest.raises(kw.InvalidArgument):
        calls[name](f"{tmp_path}/a\0b")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_bytes() == before


@pytest.mark.parametrize("name", ["save", "load", "use_pack", "pack", "snapshot", "profile"])
@pytest.mark.parametrize("value", [3, None, 2.5, [], object()])
def test_what_is_no_path_is_refused(calls, name, value):
    with pytest.raises(kw.ArgumentError, match="path"):
        calls[name](value)


@pytest.mark.parametrize("name", ["kernel", "module", "program", "lint", "load", "use_pack"])
def test_pipes_devices_and_folders_are_refused_at_once(calls, name, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), Path("/dev/null"), tmp_path):
        with pytest.raises(kw.Error, match=r"file|directory"):
            calls[name](str(path))


def test_a_source_has_a_limit_of_size(tmp_path):
    path = tmp_path / "huge.cu"
    with open(path, "wb") as file:
        file.truncate((1 << 26) + 1)
    with pytest.raises(kw.InvalidArgument, match="limit"):
        kw.kernel(path)


def test_bytes_are_a_path_too(tmp_path):
    code = kw.Program(TEXT).compile("ptx")
    code.save(os.fsencode(tmp_path / "code"))
    assert kw.ObjectCode.load(str(tmp_path / "code")).code == code.code
