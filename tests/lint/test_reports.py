"""Findings of kw.checks() raise nothing, so a test that asks for checks looks at their report."""

import pathlib
import re

TESTS = pathlib.Path(__file__).resolve().parents[1] / "python"
OPENED = re.compile(r"^\s*(?:async )?with [^#\n]*kw\.checks\([^\n]*\):$", re.MULTILINE)
# Loops that poll race by design: their end is looked at. The others test the blocks themselves.
WITHOUT = {"test_polling.py", "test_checks_order.py", "test_checks_scopes.py"}


def unread(text):
    return [m.group().strip() for m in OPENED.finditer(text) if " as " not in m.group()]


def test_every_report_of_checks_has_a_name():
    found = {path.name: unread(path.read_text()) for path in sorted(TESTS.glob("*.py"))}
    assert {name: lines for name, lines in found.items() if lines and name not in WITHOUT} == {}
    assert all(found[name] for name in WITHOUT)


def test_a_block_without_a_name_is_found():
    text = 'x = """\nwith kw.checks("race"):\n    go()\nwith kw.checks("race") as report:\n"""\n'
    assert unread(text) == ['with kw.checks("race"):']
