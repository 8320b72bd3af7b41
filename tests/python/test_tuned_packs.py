"""A pack takes winners along: a process without a compiler launches them."""

import json

import numpy as np
import pytest
from children import run_child
from tuning import SCALE, result_row, run, write_rows

import kernwright as kw
from kernwright import _core


@pytest.fixture
def kernel():
    return kw.kernel(SCALE)


@pytest.fixture
def arch(device):
    if device.is_simulated:
        return "sim"
    return "sm_{}{}".format(*device.compute_capability)


@pytest.fixture
def dropped():
    yield
    _core._pack_drop("")


CHILD = """
import sys
import kernwright as kw
sys.path.insert(0, {tests!r})
from tuning import SCALE, run
kw.use_pack({pack!r})
fast = kw.kernel(SCALE).tuned()
run(fast, 4096)
run(fast, 5)
for choice in fast.choices:
    print(choice.from_store, dict(choice.config or {{}}))
print(kw.cache.info()["process"]["compiles"])
"""


def test_a_process_without_a_compiler_launches_the_winners(tmp_path, kernel, arch):
    rows = [
        result_row(kernel, {"BLOCK": 64, "V": 2}, driver=1),  # another driver built the pack
        result_row(kernel, {"BLOCK": 128, "V": 4}, source="0" * 32),  # stale: stays behind
    ]
    fast = kernel.tuned(write_rows(tmp_path / "store", *rows))
    packed = kw.pack(tmp_path / "k.kwpack", [fast], archs=[arch])
    assert len(packed) == 2  # the winner and the default
    code = CHILD.format(tests=str(__import__("pathlib").Path(__file__).parent),
                        pack=str(tmp_path / "k.kwpack"))  # fmt: skip
    ended = run_child(code, KERNWRIGHT_NVRTC=str(tmp_path / "none"), KERNWRIGHT_CACHE="off")
    assert ended.code == 0, ended.err
    assert ended.out.splitlines() == [
        "True {'BLOCK': 64, 'V': 2}",
        "False {'BLOCK': 32, 'V': 1}",
        "0",
    ]
    assert "driver: 1, not" in ended.err


def test_rows_of_a_session_that_are_elsewhere_come_along(tmp_path, kernel, arch, dropped):
    row = result_row(kernel, {"BLOCK": 64, "V": 2}, grid=None, block=None, default=None)
    session = {"v": 1, "kind": "session", "session": row["session"], "block": "BLOCK",
               "grid": "-(-n // (BLOCK * V))", "default": {"BLOCK": 96, "V": 1}}  # fmt: skip
    fast = kernel.tuned(write_rows(tmp_path / "store", session, row))
    first, second = (tmp_path / name for name in ("a", "b"))
    for path in (first, second):
        kw.pack(path, [fast, kernel], archs=[arch])
    assert first.read_bytes() == second.read_bytes()
    kw.use_pack(first)
    again = kernel.tuned()
    run(again, 4096)
    run(again, 3)
    assert [choice.config["BLOCK"] for choice in again.choices] == [64, 96]
    assert str(first) in again.why


def test_results_hold_where_the_headers_were_left_behind(tmp_path, arch, dropped):
    (tmp_path / "own.h").write_text("// one\n")
    source = tmp_path / "k.cu"
    source.write_text('#include "own.h"\n' + SCALE)
    kernel = kw.kernel(source)
    path = write_rows(tmp_path / "store", result_row(kernel, {"BLOCK": 64, "V": 2}))
    kw.pack(tmp_path / "p", [kernel.tuned(path)], archs=[arch])
    kw.use_pack(tmp_path / "p")
    assert kw.kernel(source).tuned().choice(n=4096).from_store
    (tmp_path / "own.h").write_text("// two\n")
    assert not kw.kernel(source).tuned().choice(n=4096).from_store
    (tmp_path / "own.h").unlink()
    assert kw.kernel(source).tuned().choice(n=4096).from_store


def test_what_has_nothing_tuned_is_told(tmp_path, kernel, dropped):
    stale = result_row(kernel, {"BLOCK": 64, "V": 2}, source="0" * 32)
    fast = kernel.tuned(write_rows(tmp_path / "store", stale), grid=1, block=32)
    with pytest.raises(kw.InvalidArgument, match="nothing tuned to pack"):
        kw.pack(tmp_path / "p", [fast], archs=["sim"])
    assert not (tmp_path / "p").exists()
    with pytest.raises(kw.InvalidArgument, match="no pack in use"):
        kernel.tuned()
    kw.pack(tmp_path / "p", [kernel], archs=["sim"])
    kw.use_pack(tmp_path / "p")
    with pytest.raises(kw.InvalidArgument, match="no pack in use"):
        kernel.tuned()
    with pytest.raises(kw.ArgumentError, match="tuned kernels"):
        kw.pack(tmp_path / "p", [np.zeros(3)], archs=["sim"])


def test_the_command_takes_a_store(tmp_path, kernel, arch, dropped):
    from kernwright import cli

    (tmp_path / "k.cu").write_text(SCALE)
    own = kw.kernel(tmp_path / "k.cu")
    write_rows(tmp_path / "store", result_row(own, {"BLOCK": 64, "V": 2}))
    manifest = {"archs": [arch], "items": [{"file": "k.cu", "store": "store"}]}
    (tmp_path / "m.json").write_text(json.dumps(manifest))
    assert cli.main(["pack", str(tmp_path / "m.json"), "-o", str(tmp_path / "p")]) == 0
    kw.use_pack(tmp_path / "p")
    assert own.tuned().choice(n=4096).from_store
    manifest["items"][0]["store"] = 3
    (tmp_path / "m.json").write_text(json.dumps(manifest))
    assert cli.main(["pack", str(tmp_path / "m.json"), "-o", str(tmp_path / "p")]) == 2
