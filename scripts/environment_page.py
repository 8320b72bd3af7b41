"""Writes docs/environment.md from the library's table of variables: environment_page.py [PATH]."""

import pathlib
import sys

from kernwright import _core

PAGE = pathlib.Path(__file__).resolve().parents[1] / "docs" / "environment.md"
INTRODUCTION = """\
# Environment variables

Written by `scripts/environment_page.py` from the library's own table. An invalid value raises an
error with the variable and the allowed values. A misspelt name causes a warning.
`kernwright doctor` shows the variables that are set.

| variable | default | values | meaning |
|---|---|---|---|
"""
MESSAGES = """
## Messages in Python

Without `KERNWRIGHT_LOG`, messages of the library are records of the logger `kernwright` of Python's
`logging`: errors, warnings, info (each kernel that becomes ready) and debug (each launch).

```python
import logging

logging.basicConfig()                                    # from now on handlers get them
logging.getLogger("kernwright").setLevel(logging.INFO)   # the library's level follows
```

- The library makes no message below the level of the logger, which is the root's unless it has one
  of its own. As long as no handler is there, messages are lines of stderr.
- No thread waits for handlers within the library, and handlers run with none of its locks held. A
  message of the main thread is a record when its call has returned. Others are delivered by a
  thread, which exists only while there are some. When 4096 wait for slow handlers, the next ones
  are lines of stderr. A message is there within some 50 ms: a process that crashes, or ends by
  `os._exit` or `exec` before, loses it. `KERNWRIGHT_LOG` writes each at once.
- `logging.config` disables loggers that it does not name, unless `disable_existing_loggers` is
  false. A disabled logger is silent.
- `logging.getLogger("kernwright").addHandler(logging.NullHandler())` silences them. A forked child
  has a log of its own.
- With `KERNWRIGHT_LOG` set, messages up to that level are lines of stderr, as in C++, and the
  logger gets none.
"""


def page() -> str:
    rows = []
    for row in _core.environment_table():
        words = ", ".join(f"`{word}`" for word in row["choices"].split("|") if word)
        default = f"`{row['default']}`" if row["default"] else ""
        rows.append(f"| `{row['name']}` | {default} | {words} | {row['meaning']} |\n")
    return INTRODUCTION + "".join(rows) + MESSAGES


if __name__ == "__main__":
    path = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else PAGE
    path.write_text(page())
