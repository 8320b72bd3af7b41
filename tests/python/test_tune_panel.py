"""The live panel: what it says of a session, on a terminal, in plain lines, and in a notebook."""

import io
import os
import pty
import select
import threading
import types

import pytest
import tune_rows

from kernwright.tune._sessions import display as _display
from kernwright.tune._sessions.panel import Panel, plain_line
from kernwright.tune._sessions.panel_state import Lanes, PanelState, duration, sparkline


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def trial(number, value=None, status="correct", error=None, **config):
    return types.SimpleNamespace(
        number=number, config=config or {"block": 64}, status=status, error=error,
        score=value, time=value, resources={"registers": 32}, interval=(1.0, 2.0),
    )  # fmt: skip


def test_the_state_counts_and_keeps_the_best():
    state = PanelState("k")
    assert [state.trial(trial(i, v)) for i, v in enumerate([3.0, 4.0, 2.0, 2.0])] == [
        True, False, True, False,
    ]  # fmt: skip
    assert not state.trial(trial(4, None, "timeout", "slow\nmore"))
    assert state.bests == [3.0, 3.0, 2.0, 2.0, 2.0] and state.best.number == 2
    assert state.counts == {"correct": 4, "timeout": 1} and state.trials == 5
    for i in range(9):
        state.trial(trial(10 + i, None, "compile"))
    assert [t.number for t in state.failures] == [16, 17, 18]


def test_use_of_lanes_is_the_share_of_their_time():
    lanes = Lanes(2)
    assert lanes.use(0.0) == 0.0
    lanes.event(True, 1, 0.0)
    lanes.event(False, 1, 1.0)
    lanes.event(True, 2, 1.0)
    assert lanes.use(2.0) == pytest.approx(0.5)
    lanes.event(False, 7, 2.0)  # whose begin was not told
    lanes.event(True, 3, 2.0)
    lanes.event(True, 4, 2.0)
    assert lanes.count == 3


@pytest.mark.parametrize(
    ("budget", "left"),
    [({}, None), ({"seconds": 30}, 20), ({"evaluations": 20}, 30), ({"seconds": 5}, 0),
     ({"seconds": 30, "evaluations": 8}, 6), ({"gpu_seconds": 4.0}, 10), ({"target": 1.0}, None)],
)  # fmt: skip
def test_time_left(budget, left):
    clock = Clock()
    state = PanelState("k", budget, clock=clock)
    assert state.left() is None or budget.keys() & {"seconds"}
    for i in range(5):
        state.trial(trial(i, 1.0))
    state.lane("gpu", True, 0, 0.0)
    state.lane("gpu", False, 0, 2.0)
    clock.now = 10.0
    found = state.left()
    assert found == left if left is None else found == pytest.approx(left)


def test_words_and_sparklines():
    assert [duration(s) for s in (0.04, 59.94, 185, 3723)] == ["0.0 s", "59.9 s", "3:05", "1:02:03"]
    assert sparkline([]) == "" and len(sparkline([5.0])) == 1
    line = sparkline([8.0, 4.0, 2.0, 1.0])
    assert list(line) == sorted(line, reverse=True) and len(set(line)) == 4
    assert len(sparkline([float(i) for i in range(1, 1000)])) == 40
    assert len(set(sparkline([0.0, -1.0, 3.0]))) == 1


def test_without_a_terminal_there_are_few_plain_lines():
    out = io.StringIO()
    with Panel("k", file=out, budget={"evaluations": 500}) as panel:
        for i in range(500):
            panel.lane("compile", True, i, 0.0)
            panel.trial(trial(i, 1000.0 - i if i % 2 else None, "correct" if i % 2 else "runtime"))
    lines = out.getvalue().splitlines()
    assert 2 <= len(lines) <= 3 and all(line.startswith("k: ") for line in lines)
    assert "500 trials, 250 failed, best 501 ms" in lines[-1]
    assert "\x1b" not in out.getvalue()


class Stalled(io.StringIO):
    """A terminal whose writes stand still after stall(), until go_on()."""

    def __init__(self):
        super().__init__()
        self.stands, self._free = threading.Event(), threading.Event()
        self._free.set()

    def isatty(self):
        return True

    def stall(self):
        self._free.clear()

    def go_on(self):
        self._free.set()

    def write(self, text):
        if not self._free.is_set():
            self.stands.set()
            self._free.wait(60)
        return super().write(text)


def test_events_do_not_wait_for_the_drawing(monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    out = Stalled()
    with Panel("k", file=out) as panel:
        out.stall()
        assert out.stands.wait(60)
        for i in range(100):
            panel.lane("gpu", True, i, 0.0)
            panel.trial(trial(i, 1.0))
        assert panel.state.trials == 100 and not out._free.is_set()
        out.go_on()
    assert "100 correct" in out.getvalue()


def test_a_file_that_goes_away_ends_the_showing_only():
    out = io.StringIO()
    with Panel("k", file=out) as panel:
        out.close()
        panel.trial(trial(0, 1.0))
    with Panel("k", file=None) as panel:
        panel.trial(trial(0, 1.0))


def read_until(descriptor, words):
    """What comes until all of `words` have come."""
    found = b""
    while not all(word in found for word in words):
        ready, _, _ = select.select([descriptor], [], [], 60)
        assert ready, found
        found += os.read(descriptor, 65536)
    return found.decode()


def test_on_a_terminal_it_is_drawn(monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("NO_COLOR", raising=False)
    reader, writer = pty.openpty()
    with open(writer, "w") as out:
        with Panel("k[red]x", file=out, budget={"seconds": 99}, compile_lanes=2) as panel:
            panel.lane("compile", True, 1, 0.0)
            panel.trial(trial(1, 2.5, block=96))
            panel.trial(trial(2, None, "compile", "error: [bold]y[/bold]\nsecond line"))
            panel.trial(trial(3, None, "compile", "error: \x1b]0;title\x07\x1b[2J"))
            words = (b"tuning k[red]x", b"2.5 ms", b"block=96", b"1 of 2 at work", b"left",
                     b"2 compile, 1 correct", b"error: ?]0;title??[2J",
                     b"trial 2: error: [bold]y[/bold]")  # fmt: skip
            text = read_until(reader, words)
    os.close(reader)
    assert "\x1b[" in text and "second line" not in text


def test_without_rich_a_terminal_gets_plain_lines(monkeypatch):
    import importlib

    def missing(name, *rest):
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    out = io.StringIO()
    with Panel("k", file=out, live=True) as panel:
        panel.trial(trial(0, 1.0))
    assert out.getvalue().startswith("k: ")


def test_plain_line_of_counts_has_no_unit():
    state = PanelState("k")
    one = trial(0, 12345.0)
    one.time = None
    state.trial(one)
    assert "best 12,345  (" in plain_line(state)


def test_notebooks_show_sessions_trials_and_results():
    rows = tune_rows.session_rows(count=20, kernel="<i>k</i>")
    shown = _display.session_html(rows, "k")
    assert "<svg" in shown and "&lt;i&gt;k" in shown and "<i>k" not in shown
    assert "none yet" in _display.session_html([], "<b>")
    one = _display.trial_html(trial(3, 1.5, block="<script>"))
    assert "Trial 3" in one and "1.5 ms" in one and "<script>" not in one
    failed = _display.trial_html(trial(4, None, "compile", "<b>error</b>"))
    assert "&lt;b&gt;error" in failed and " ms<" not in failed.replace("1 to 2 ms", "")
    best = types.SimpleNamespace(config={"a": 1}, median=0.5, interval=(0.4, 0.6), ties=[1, 2])
    assert "0.5 ms" in _display.best_html(best) and "2 that noise" in _display.best_html(best)
