"""Each symptom that users of others report has tests here: ../reports.md names them."""

import pathlib
import re

HERE = pathlib.Path(__file__).parent


def test_each_report_has_tests_that_are_there():
    text = (HERE.parent / "reports.md").read_text()
    rows = re.findall(r"^\| [a-z ]+ \| (.+?) \| (.+?) \|$", text, re.MULTILINE)[1:]
    units = (HERE.parent / "unit").glob("**/*_test.cpp")
    titles = {t for f in units for t in re.findall(r'TEST_CASE\(\s*"(.+)"\)', f.read_text())}
    assert len(rows) > 90 and len({symptom for symptom, _ in rows}) == len(rows)
    for symptom, tests in rows:
        named = re.findall(r"`(\w+):(\w+)`", tests)
        quoted = re.findall(r'"([^"]+)"', tests)
        assert named or quoted, symptom
        assert titles.issuperset(quoted), (symptom, quoted)
        for file, name in named:
            found = (HERE / f"test_{file}.py").read_text()
            assert re.search(rf"^def test_{name}\(", found, re.MULTILINE), (symptom, file, name)
