"""Stores from Python: rows, damaged files, queries and hashes."""

import importlib.resources
import json
import os
import pickle
import zipfile

import pytest
from tuning import SCALE, result_row, write_rows

import kernwright as kw
from kernwright.tune import Space, Store
from kernwright.tune._store import kernel_key, source_hash, space_hash


@pytest.fixture
def kernel():
    return kw.kernel(SCALE)


def test_rows_are_appended_and_read(tmp_path, kernel):
    store = Store(tmp_path / "store.jsonl")
    assert len(store) == 0 and store.results == [] and store
    assert store.problems == [f"{tmp_path}/store.jsonl: there is no such file"]
    row = result_row(kernel, {"BLOCK": 64})
    trial = {"config": {}, "status": "timeout", "about": "1", "text": "\u00e9\n\ud800"}
    store.append(row, {"kind": "trial", "session": "a", **trial})
    assert store.results == [row] and len(store) == 1 and store.problems == []
    assert [r["session"] for r in store.rows("trial")] == ["a"]
    assert len(store.rows()) == 2 and len(store.rows(session="a")) == 1
    again = pickle.loads(pickle.dumps(store))
    assert again.results == store.results and repr(again) == repr(store)


@pytest.mark.parametrize("row", [{}, {"kind": "trial"}, {"kind": "other", "session": "a"}])
def test_rows_that_are_none_are_refused(tmp_path, row):
    store = Store(tmp_path / "store.jsonl")
    with pytest.raises(kw.InvalidArgument):
        store.append(row)
    assert not (tmp_path / "store.jsonl").exists()


def test_paths_that_name_no_file(tmp_path):
    with pytest.raises(kw.StoreError, match="is a folder") as caught:
        Store(tmp_path)
    assert isinstance(caught.value, OSError) and caught.value.errno
    with pytest.raises(kw.StoreError, match="No such file"):
        Store(tmp_path / "none" / "store").append({"kind": "trial", "session": "a"})
    for wrong in (3, None, b"bytes"):
        with pytest.raises(kw.ArgumentError):
            Store(wrong)
    for wrong in ("", "a\0b"):
        with pytest.raises(kw.InvalidArgument):
            Store(wrong)
    with pytest.raises(kw.ArgumentError):
        Store()


@pytest.mark.skipif(os.getuid() == 0, reason="root may read every file")
def test_a_file_that_cannot_be_read(tmp_path):
    path = tmp_path / "store"
    path.write_text("")
    path.chmod(0)
    with pytest.raises(kw.StoreError, match="Permission denied"):
        Store(path)


@pytest.mark.parametrize(
    ("junk", "problem"),
    [
        (b"\x00\xff\xfe binary", "is no JSON object"),
        (b'{"v": 1, "kind": "res', "is no JSON object"),
        (b'{"v": 7, "kind": "result", "session": "a"}', "is of version 7"),
        (b"[" * 5000, "is no JSON object"),
        (b'{"v":1,"kind":"result","session":"a","config":[]}', "cannot be used"),
        (b'{"v":1,"kind":"result","session":"a","config":{"B":{}}}', "cannot be used"),
        *(
            (
                b'{"v":1,"kind":"result","session":"a","config":{"B":1},"median_ms":%s}' % time,
                "its time is",
            )
            for time in (b"0", b"0.0", b"-1")
        ),
    ],
)
def test_damaged_lines_are_told_and_the_others_are_used(tmp_path, kernel, junk, problem):
    path = tmp_path / "store.jsonl"
    row = result_row(kernel, {"BLOCK": 64})
    text = json.dumps(row).encode() + b"\n" + junk + b"\n" + json.dumps(row).encode() + b"\n"
    path.write_bytes(text)
    store = Store(path)
    assert store.results == [row, row]
    assert len(store.problems) == 1 and problem in store.problems[0]
    assert path.read_bytes() == text


TRIAL = {"v": 1, "kind": "trial", "session": "a", "config": {"B": 1}, "status": "correct",
         "score": 2.0}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({}, None),
        ({"status": "timeout", "score": None}, None),
        ({"status": "fine"}, 'is a trial of the status "fine"'),
        ({"status": 7}, "is a trial without a status"),
        ({"config": {"B": 3}}, "outside its session's space"),
        ({"config": {"B": 1, "C": 1}}, "outside its session's space"),
        ({"config": 5}, "is a trial without a configuration"),
        ({"config": {"B": []}}, "is a trial with an invalid value"),
        ({"score": "2"}, "is a correct trial without a score"),
        ({"score": None}, "is a correct trial without a score"),
        ({"times_ms": "1"}, "is a trial with a member of a wrong type"),
        ({"session": "b"}, "is a trial without the row of its session"),
        ({"session": "b", "about": "12"}, None),  # what it is about it says itself
    ],
)
def test_trials_that_nobody_can_go_on_with_are_told(tmp_path, change, problem):
    path = tmp_path / "store.jsonl"
    session = {"v": 1, "kind": "session", "session": "a", "space": {"parameters": {"B": [1, 2]}}}
    rows = [session, TRIAL, {**TRIAL, **change}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    told = Store(path).problems
    assert told == [] if problem is None else (len(told) == 1 and problem in told[0]), told
    assert problem is None or f"{path}: line 3 " in told[0]


def test_lines_that_are_cut_or_run_together_are_told(tmp_path):
    path = tmp_path / "store.jsonl"
    whole = json.dumps(TRIAL, separators=(",", ":"))
    path.write_text('{"a":\n{"a":' + whole + "\n")
    assert Store(path).problems == [f"{path}: line 1 (and 1 more) is no JSON object"]


def test_stores_merge_with_cat_and_by_a_list(tmp_path, kernel):
    one = write_rows(tmp_path / "one", result_row(kernel, {"BLOCK": 64}))
    two = write_rows(tmp_path / "two", result_row(kernel, {"BLOCK": 128}))
    both = tmp_path / "both"
    both.write_bytes(one.read_bytes() + two.read_bytes())
    assert Store(both).results == Store(one, two).results == Store([one, str(two)]).results
    with pytest.raises(kw.InvalidArgument, match="one file"):
        Store(one, two).append(result_row(kernel, {"BLOCK": 64}))


def test_a_store_within_a_package_is_read_also_from_a_zip(tmp_path, kernel, monkeypatch):
    row = result_row(kernel, {"BLOCK": 64})
    with zipfile.ZipFile(tmp_path / "package.zip", "w") as archive:
        archive.writestr("tuned_package/__init__.py", "")
        archive.writestr("tuned_package/store.jsonl", json.dumps(row) + "\n")
    monkeypatch.syspath_prepend(str(tmp_path / "package.zip"))
    store = Store(importlib.resources.files("tuned_package") / "store.jsonl")
    assert store.results == store.rows("result") == [row]
    assert store.rows("trial") == []
    with pytest.raises(kw.InvalidArgument):
        store.append(row)
    folder = tmp_path / "read_only"
    folder.mkdir()
    path = write_rows(folder / "store.jsonl", row)
    path.chmod(0o444)
    folder.chmod(0o555)
    try:
        assert Store(path).results == [row]
    finally:
        folder.chmod(0o755)


def test_a_query_names_what_differs(tmp_path, kernel):
    store = Store(write_rows(tmp_path / "store", result_row(kernel, {"BLOCK": 64, "V": 2})))
    key = kernel_key(kernel, ["BLOCK", "V"], problem={"n": 5000})
    (match,) = store.find(key)
    assert match.exact and match.config == {"BLOCK": 64, "V": 2} and match.distance == 0
    (match,) = store.find({**key, "driver": 1, "nvrtc": "1.0", "problem": {"n": 1}})
    assert [part for part, _ in match.differences] == ["nvrtc", "driver", "problem"]
    assert match.differences[2][1] == "problem: n 4096, not 1"
    assert store.find({"kernel": "other"}) == []
    with pytest.raises(kw.InvalidArgument, match="driver"):
        store.find({"kernel": "scale", "driver": "new"})


def test_hashes_see_edits(tmp_path):
    def hashed(text, **options):
        return source_hash(kw.kernel(text, **options), ["BLOCK"])

    before = hashed(SCALE)
    assert before == hashed(SCALE, defines={"BLOCK": 64})
    others = [
        hashed(SCALE + "//"),
        hashed(SCALE, defines={"V": 2}),
        hashed(SCALE, fast_math=True),
        hashed(SCALE, headers={"other.h": ""}),
        hashed(SCALE, extra=["--ftz=true"]),
    ]
    assert len({before, *others}) == 6
    (tmp_path / "factor.h").write_text("#define FACTOR 1\n")
    source = tmp_path / "kernel.cu"
    source.write_text('#include "factor.h"\n' + SCALE)
    with_header = source_hash(kw.kernel(source), [])
    assert with_header == source_hash(kw.kernel(source), [])
    (tmp_path / "factor.h").write_text("#define FACTOR 2\n")
    assert with_header != source_hash(kw.kernel(source), [])
    code = kw.Program(SCALE).compile("ptx")
    with pytest.raises(kw.InvalidArgument, match="object code"):
        source_hash(code.kernel("scale"), [])


def test_spaces_have_hashes():
    limit = 64

    def spaces():
        yield Space(b=[1, 2])
        yield Space(b=[2, 1])
        yield Space(b=[1, 2], c=[1])
        yield Space(b=[1, 2]).require("b < 2")
        yield Space(b=[1, 2]).require(lambda b: b < 2)
        yield Space(b=[1, 2]).require(lambda b: b < 3)
        yield Space(b=[1, 2]).require(lambda b: b <= 2)
        yield Space(b=[1, 2]).require(lambda b: b < limit)
        yield Space(b=[1, 2]).require_device(threads="b")
        yield Space.from_configurations([{"b": 1}, {"b": 2}])

    hashes = [space_hash(space) for space in spaces()]
    assert len(set(hashes)) == len(hashes)
    assert hashes == [space_hash(space) for space in spaces()]
    limit = 65
    assert hashes[7] != [space_hash(space) for space in spaces()][7]
    one, other = ([Space.from_configurations(rows)] for rows in ([{"b": 1}], [{"b": 2}]))
    assert space_hash(one[0]) != space_hash(other[0])
