"""Whole kernels, compiled by the installed NVRTC, against results recorded on a GPU."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "sim"))
import corpus

import kernwright as kw

CASES = corpus.load_cases()


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_case(case):
    if package := corpus.missing_headers(case):
        pytest.skip(f"needs the headers of {package}")
    got = corpus.run(case, kw.current_device())
    corpus.check(case, got, corpus.stored_results(case))


def test_every_case_has_stored_results():
    assert set(corpus.load_vectors()) == {case["name"] for case in CASES}
