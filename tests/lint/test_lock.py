"""The GIL is released and taken in one place. Only there is the end of the interpreter known."""

import re

TAKES = re.compile(r"gil_scoped_\w+|PyGILState_Ensure|PyEval_(?:Save|Restore)Thread|Py_BEGIN_ALLOW")


def test_only_gil_cpp_touches_the_lock(root, tracked):
    problems = [
        f"{path}: {match[0]}; use GilRelease or GilAcquire of gil.h"
        for path in tracked
        if path.parts[0] == "bindings" and path.suffix in {".h", ".cpp"} and path.stem != "gil"
        for match in TAKES.finditer((root / path).read_text())
    ]
    assert not problems, "\n".join(problems)
