"""Kernels with an attack on the judge, each refused for the right reason.

The first line of each file in judge_attacks/ describes the attack, "expect:" has the right
statuses, "also:" further ones for machines with a GPU, too. "only: counts" stands where a claim is
refuted by counted transactions: a GPU is timed, and no launch is shorter than the claim.
"""

import pathlib

import judge_tasks
import pytest

import kernwright as kw

FOLDER = pathlib.Path(__file__).parent / "judge_attacks"
TIMED = not kw.current_device().is_simulated


def header(path, word):
    for line in path.read_text().splitlines()[1:5]:
        if line.startswith(f"// {word}: "):
            return line.split(": ", 1)[1].split()
    return []


ATTACKS = [
    path
    for path in sorted(FOLDER.glob("*.cu"))
    if not (TIMED and header(path, "only") == ["counts"])
]


@pytest.fixture(scope="module")
def judge():
    with kw.Judge(2) as made:
        yield made


@pytest.fixture(scope="module")
def verdicts(judge):
    """All of them at once, on two workers."""
    return {
        path.stem: judge.submit(path, make_task(path), timeout=patience(path), seed=5)
        for path in ATTACKS
    }


def patience(path):
    """Seconds: few for endless kernels."""
    return 3 if "timeout" in header(path, "expect") + header(path, "also") else 60


def make_task(path):
    return judge_tasks.TASKS[(header(path, "task") or ["affine"])[0]]


def test_there_are_many():
    assert len(ATTACKS) >= 200


@pytest.mark.parametrize("path", ATTACKS, ids=lambda path: path.stem)
def test_is_refused(path, verdicts):
    verdict = verdicts[path.stem].result(timeout=300)
    assert not verdict.accepted
    assert verdict.status in header(path, "expect") + header(path, "also"), str(verdict)
    assert verdict.reason


def test_the_judge_is_unharmed(judge, verdicts):
    for future in verdicts.values():
        future.result(timeout=300)
    assert judge.judge(judge_tasks.GOOD, judge_tasks.AFFINE).accepted
