"""Every faulty kernel of tests/sim/bugs is found, at its lines, and nothing else is."""

import pathlib
import sys

import bug_corpus
import numpy as np
import pytest
from children import run_child

import kernwright as kw

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "sim"))
import corpus

pytestmark = pytest.mark.usefixtures("sim")

BUGS = bug_corpus.bugs()


def test_there_are_enough_faulty_kernels_of_each_kind():
    assert len(BUGS) >= 120
    kinds = [bug.kind for bug in BUGS]
    assert min(kinds.count(kind) for kind in ("race", "init", "sync", "bounds")) >= 5
    assert sum(bug.can_be_fixed for bug in BUGS) >= 25


def array(argument):
    if argument.value == "iota":
        return kw.asarray(np.arange(argument.count).astype(argument.dtype))
    if argument.value == "zeros":
        return kw.zeros(argument.count, argument.dtype)
    result = kw.empty(argument.count, argument.dtype)
    if argument.value == "freed":
        address = result.ptr
        del result
        kw.current_device().synchronize()
        return kw.Pointer(address)
    return result


def number(argument):
    if argument.dtype == "uint64":
        return kw.Pointer(int(argument.value))
    return np.dtype(argument.dtype).type(argument.value)


def launch(bug, fixed=False):
    arch = "compute_90a" if bug.capability else None
    defines = {"FIXED": 1} if fixed else {}
    kernel = kw.kernel(bug.source, name="bug", arch=arch, defines=defines)
    arguments = [array(one) if one.count else number(one) for one in bug.arguments]
    config = kw.LaunchConfig(
        bug.grid, bug.block, None, bug.shared, cooperative=bug.cooperative, cluster=bug.cluster
    )
    kernel.launch(config, *arguments)


@pytest.mark.parametrize(
    "bug", [bug for bug in BUGS if not bug.capability], ids=lambda bug: bug.name
)
def test_finds(bug):
    skip_without_headers(bug)
    find(bug)


@pytest.mark.parametrize(
    "bug",
    [bug for bug in BUGS if bug.can_be_fixed and not bug.capability],
    ids=lambda bug: bug.name,
)
def test_finds_nothing_once_it_is_fixed(bug):
    skip_without_headers(bug)
    find_nothing(bug)


def skip_without_headers(bug):
    if lacking := corpus.lacks_headers_of(bug.source):
        pytest.skip(f"needs the headers of {lacking}")


def test_finds_what_takes_a_newer_device():
    """The capability of the simulated device is that of its process."""
    newer = [bug for bug in BUGS if bug.capability]
    assert {bug.capability for bug in newer} == {"9.0"}
    folder = pathlib.Path(__file__).parent
    ended = run_child(
        f"""
        import sys
        sys.path.insert(0, {str(folder)!r})
        import test_checks_corpus as tests
        for bug in tests.BUGS:
            if bug.capability:
                tests.find(bug)
                if bug.can_be_fixed:
                    tests.find_nothing(bug)
                print("found", bug.name)
        """,
        KERNWRIGHT_DEVICE="sim",
        KERNWRIGHT_SIM_CAPABILITY="9.0",
    )
    assert ended.code == 0, ended.err
    assert ended.out.split() == [word for bug in newer for word in ("found", bug.name)]


def find_nothing(bug):
    with kw.checks() as report:
        launch(bug, fixed=True)
    assert not report, str(report)


def find(bug):
    with kw.checks() as report:
        try:
            launch(bug)
        except kw.DeviceFault as fault:
            assert fault.kind == bug.kind, str(fault)
    lines = {}
    for finding in report:
        lines.setdefault(finding.kind, set()).update(finding.lines)
    assert lines == bug.lines, str(report)
    for finding in report:
        assert finding.message and finding.opcode
        assert finding.hint or bug.kind not in ("race", "init")
