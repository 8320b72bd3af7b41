"""Every operation on the simulated device under all checks: nothing is found."""

import pytest
from test_every_operation import CASES

import kernwright as kw


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_under_all_checks(case, sim):
    with kw.checks("memory", "init", "race", "sync") as report:
        case.call(*case.arguments())
        kw.synchronize()
    assert not report.findings
