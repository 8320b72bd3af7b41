"""lint() and its command: places in .cu and .py files, what is skipped, exit codes, cost."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "sim"))
import corpus

import kernwright as kw
from kernwright._jit.literals import find_literals

SOURCES = corpus.HERE / "sources"


def lint(*arguments, cwd=None):
    return subprocess.run(
        [sys.executable, "-m", "kernwright", "lint", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
    )


def literals(text):
    return find_literals(textwrap.dedent(text), "x.py")


def test_a_good_text_gives_an_empty_list():
    assert kw.lint("__global__ void k(int* x) { *x = 1; }") == []


def test_an_error_has_its_place_and_severity():
    (error,) = kw.lint("__global__ void k(int* x) {\n  *x = missing;\n}")
    assert error.severity == "error"
    assert (error.line, error.column) == (2, 8)
    assert "missing" in error.message


def test_options_are_those_of_kernel():
    text = "__global__ void k(int* x) { *x = W; }"
    assert len(kw.lint(text)) == 1
    assert kw.lint(text, defines={"W": 3}) == []
    assert kw.lint(text, options=kw.ProgramOptions(defines={"W": 3})) == []
    with pytest.raises(kw.ArgumentError, match="defines"):
        kw.lint(text, define={"W": 3})


def test_a_path_is_read(tmp_path):
    (tmp_path / "beside.h").write_text("#define ONE 1\n")
    file = tmp_path / "k.cu"
    file.write_text('#include "beside.h"\n__global__ void k(int* x) { *x = ONE + two; }\n')
    (error,) = kw.lint(file)
    assert error.file == str(file) and error.line == 2
    assert "two" in error.message


def test_literals_are_found_with_their_places():
    found = literals('''
        """A docstring: __global__ void no() { }"""
        import kernwright as kw
        PLAIN = r"""
        __global__ void a() { }
        """
        with_escapes = "// one\\n__global__ void b() {\\n}"
        joined = ("__global__ void c() {"
                  "int x;\\n}")
        def make():
            return kw.kernel("""__global__ void d() { }""", defines={"W": 3}, timeout=limit)
        other = "no kernel here"
        words = "declares no __global__ function"
        ''')
    assert [literal.name for literal in found] == ["PLAIN", "with_escapes", "joined", "make"]
    plain, escapes, joined, made = found
    assert plain.place(2, 1) == (5, 1)
    assert escapes.place(1, 1) == (7, 17)
    assert escapes.place(2, 1) == (7, 25)
    assert joined.place(1, 1) == (8, 12)
    assert joined.place(2, 1) == (9, 20)
    assert made.place(1, 1) == (11, 25)
    assert made.options == {"defines": {"W": 3}}


def test_options_follow_a_name():
    (literal,) = literals('''
        SOURCE = """__global__ void a(int* x) { *x = W; }"""
        k = kw.kernel(SOURCE, "a", defines={"W": "1"}, std="c++20")
        ''')
    assert literal.options == {"defines": {"W": "1"}, "std": "c++20"}


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ('f"__global__ void a() {{ int x = {n}; }}"', "an f-string with placeholders"),
        ('"__global__ void a() { %s }" % x', "a pattern"),
        ('"__global__ void a() { }" + tail', "a part of a larger text"),
        ('"__global__ void a() { @ }".replace("@", x)', "a pattern of .replace()"),
    ],
)
def test_texts_that_are_not_whole_are_named_and_skipped(tmp_path, code, why):
    (tmp_path / "some.py").write_text(f"\nKERNEL = {code}\n")
    result = lint("some.py", cwd=tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout == f"some.py:2:10: note: KERNEL is {why}: not checked\n"


def test_an_f_string_without_placeholders_is_checked(tmp_path):
    (tmp_path / "some.py").write_text('K = f"__global__ void a() {{ missing(); }}"\n')
    result = lint("some.py", cwd=tmp_path)
    assert result.returncode == 1
    assert "missing" in result.stdout


def test_messages_are_as_compilers_write_them(tmp_path):
    (tmp_path / "bad.cu").write_text("__global__ void k(int* x) {\n  int unused;\n  *x = y;\n}\n")
    result = lint("bad.cu", cwd=tmp_path)
    assert result.returncode == 1
    lines = result.stdout.splitlines()
    assert any(line.startswith("bad.cu:3:8: error: ") for line in lines), lines
    assert any(line.startswith("bad.cu:2:7: warning: ") for line in lines), lines
    assert "1 file, 1 error, 1 warning" in result.stderr


def test_json_is_one_document(tmp_path):
    (tmp_path / "bad.py").write_text('K = """\n__global__ void k(int* x) { *x = y; }\n"""\n')
    result = lint("bad.py", "--json", cwd=tmp_path)
    assert result.returncode == 1 and result.stderr == ""
    (found,) = json.loads(result.stdout)
    assert found["file"] == "bad.py" and found["line"] == 2 and found["column"] == 34
    assert found["severity"] == "error"


def test_a_python_file_that_does_not_parse_is_an_error(tmp_path):
    (tmp_path / "bad.py").write_text("def f(:\n")
    result = lint("bad.py", cwd=tmp_path)
    assert result.returncode == 1
    assert result.stdout.startswith("bad.py:1:") and "not Python" in result.stdout


@pytest.mark.parametrize("arguments", [(), ("nowhere.cu",), ("--option=dance", __file__)])
def test_wrong_use_exits_with_2(arguments):
    result = lint(*arguments)
    assert result.returncode == 2
    assert result.stdout == "" and "Traceback" not in result.stderr


def test_defines_and_folders_reach_the_compiler(tmp_path):
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc" / "w.h").write_text("#define V 2\n")
    (tmp_path / "k.cu").write_text("#include <w.h>\n__global__ void k(int* x) { *x = W + V; }\n")
    assert lint("k.cu", "-D", "W=1", "-I", "inc", cwd=tmp_path).returncode == 0
    assert lint("k.cu", "-D", "W=1", cwd=tmp_path).returncode == 1


def test_own_sources_are_clean():
    left_out = {"faults"} | {path.stem for path in SOURCES.glob("*.cu") if corpus.lacks(path)}
    files = [str(path) for path in sorted(SOURCES.glob("*.cu")) if path.stem not in left_out]
    assert len(files) > 30
    result = lint("--option=--device-int128", *files)
    assert result.returncode == 0, result.stdout


APP = '''
import numpy as np
import kernwright as kw
TILE = 4 * 4
COUNT = TILE + 1
DEFINES = dict(TILE=TILE, COUNT=np.int32(COUNT), REAL="float")
HEADER = "#define FROM_HEADER 1\\n"
OPTIONS = kw.ProgramOptions(defines=DEFINES, headers={"h.h": HEADER})
TEXT = """
#include "h.h"
__global__ void f(REAL* o) { __shared__ REAL s[TILE]; s[0] = COUNT + FROM_HEADER; o[0] = s[0]; }
"""
'''


@pytest.mark.parametrize(
    "call",
    [
        "kw.kernel(TEXT, options=OPTIONS)",
        "kw.kernel(TEXT, 'f', options=OPTIONS, fast_math=True)",
        "kw.Program(TEXT, OPTIONS)",
        "kw.module(TEXT, defines=DEFINES, headers={'h.h': HEADER})",
        "kw.module(TEXT, **{'defines': DEFINES, 'headers': {'h.h': HEADER}})",
        "kw.module(TEXT, defines={'TILE': 1 << 4, 'COUNT': 1, 'REAL': 'flo' + 'at'}, "
        "headers={'h.h': HEADER})",
    ],
)
def test_options_of_the_call_count_where_the_text_tells_them(tmp_path, call):
    path = tmp_path / "app.py"
    path.write_text(APP + f"k = {call}\n")
    done = lint(str(path))
    assert done.returncode == 0, done.stdout
    assert "error" not in done.stdout


@pytest.mark.parametrize("value", ["{'N': n}", "make()", "DEFINES", "{'N': N}"])
def test_options_that_only_the_program_knows_are_a_note(tmp_path, value):
    path = tmp_path / "app.py"
    path.write_text(
        "import sys\nN = 1\nN = len(sys.argv)\n"
        "def f(n, DEFINES):\n"
        f'    return kw.kernel("__global__ void k(int* o) {{ o[0] = N; }}", defines={value})\n'
    )
    done = lint(str(path))
    assert done.returncode == 0
    assert "only the running program knows: not checked" in done.stdout


def test_columns_of_literals_count_characters_of_the_file():
    texts = [
        '"\u00e9"; k = "__global__ void f(int* o) { /* \\u00e9\\t\\n */ o[0] = yy; }"',
        'k = "__global__ void f(int* o) " "{ o[0] = \\\n   yy; }"',
        'k = r"""__global__ void f(int* o) { /* \u00e9\\n */ o[0] = yy; }"""',
    ]
    for source in texts:
        (literal,) = find_literals(source, "x.py")
        (found,) = kw.lint(literal.text)
        line, column = literal.place(found.line, found.column)
        assert source.split("\n")[line - 1][column - 1 :].startswith("yy"), source


def test_folders_are_searched(tmp_path):
    good = "__global__ void f(int* o) { o[0] = 1; }\n"
    for name in ("a.cu", "in/b.cu", ".git/c.cu", "venv/d.cu", "e.txt", "__pycache__/f.cu"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(good)
    (tmp_path / "venv/pyvenv.cfg").write_text("")
    (tmp_path / "in/g.py").write_text(f'K = """{good}"""\n')
    done = lint(str(tmp_path))
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.strip().endswith("3 files, 0 errors, 0 warnings")
    (tmp_path / "in/b.cu").write_text("__global__ void f(int* o) { o[0] = yy; }\n")
    done = lint(".", cwd=tmp_path)
    assert done.returncode == 1
    assert f"in{os.sep}b.cu:1:36: error" in done.stdout
    (tmp_path / "empty").mkdir()
    done = lint("empty", cwd=tmp_path)
    assert done.returncode == 2
    assert "no .cu, .py or .ipynb file" in done.stderr


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("__global__ void f(int* o) { o[0] = yy; }", [], "<stdin>:1:36: error"),
        ('K = "__global__ void f(int* o) { o[0] = yy; }"', [], "<stdin>:1:41: error"),
        (
            "__global__ void f(int* o) { o[0] = yy; }",
            ["--stdin-filename", "a.cu"],
            "a.cu:1:36: error",
        ),
        ("not: python", ["--stdin-filename", "a.py"], "a.py:1:4: error: not Python"),
        ("__global__ void f(int* o) { o[0] = N; }", ["-D", "N=1"], ""),
        ("", [], ""),
    ],
)
def test_stdin_is_checked(text, options, said):
    done = subprocess.run(
        [sys.executable, "-m", "kernwright", "lint", "-", *options],
        input=text,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert said in done.stdout
    assert done.returncode == (1 if said else 0), done.stderr
    assert done.stderr.strip().endswith(
        f"1 file, {1 if said else 0} error{'' if said else 's'}, 0 warnings"
    )


def notebook(*cells):
    return json.dumps(
        {
            "cells": [
                {"cell_type": kind, "source": text.splitlines(True) if i % 2 else text}
                for i, (kind, text) in enumerate(cells)
            ],
            "nbformat": 4,
        }
    )


def test_notebooks_are_checked_cell_by_cell(tmp_path):
    path = tmp_path / "n.ipynb"
    path.write_text(
        notebook(
            ("markdown", "# __global__ void text"),
            ("code", "%load_ext x\nimport kernwright as kw\nTILE = 4\n!ls"),
            (
                "code",
                'k = kw.kernel("""\n__global__ void f(int* o) {\n  o[TILE] = yy;\n}\n""", '
                'defines={"TILE": TILE})',
            ),
            ("code", "not: python"),
            ("code", "%%cu\n#include <cstdio>\n__global__ void g(int* o) { o[0] = zz; }"),
            ("code", "%%bash\nls (("),
        )
    )
    done = lint(str(path))
    assert done.returncode == 1
    rows = [row for row in done.stdout.splitlines() if ": error" in row]
    assert sorted(rows) == [
        f'{path}:cell 3:3:13: error: identifier "yy" is undefined',
        f"{path}:cell 4:1:4: error: not Python: invalid syntax",
        f'{path}:cell 5:3:36: error: identifier "zz" is undefined',
    ]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"cells": [{}]}', "no json", '{"cells": 3}'])
def test_what_is_no_notebook_is_an_error(tmp_path, text):
    path = tmp_path / "n.ipynb"
    path.write_text(text)
    done = lint(str(path))
    assert done.returncode == 1
    assert "not a notebook" in done.stdout
