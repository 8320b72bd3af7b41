"""The progress bar: when it is shown, and that it leaves nothing behind."""

import io
import sys

import pytest

import kernwright as kw
from kernwright._jit import lint as _lint
from kernwright._support import progress as _progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def on_terminal(monkeypatch):
    """In the test itself: pytest puts a file of its own there between fixtures and tests."""
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    return stream


def count_to(total, what="counting"):
    with _progress.Progress(what, total) as progress:
        for _ in range(total):
            progress.advance()


def test_long_work_is_shown_on_a_terminal(monkeypatch):
    terminal = on_terminal(monkeypatch)
    pytest.importorskip("rich")
    monkeypatch.setattr(_progress, "PATIENCE", 0)
    count_to(3)
    assert "counting" in terminal.getvalue()


def test_warmup_shows_what_it_waits_for(monkeypatch):
    terminal = on_terminal(monkeypatch)
    pytest.importorskip("rich")
    monkeypatch.setattr(_progress, "PATIENCE", 0)
    kernels = [kw.kernel(f"__global__ void shown{i}(int* x) {{ *x = {i}; }}") for i in range(3)]
    kw.warmup(kernels, wait=True)
    assert "compiling" in terminal.getvalue()


def test_whatever_takes_steps_shows_them(monkeypatch, tmp_path):
    terminal = on_terminal(monkeypatch)
    pytest.importorskip("rich")
    monkeypatch.setattr(_progress, "PATIENCE", 0)
    sources = [f"__global__ void packed{i}(int* x) {{ *x = {i}; }}" for i in range(2)]
    rows = kw.pack(tmp_path / "two.kwpack", sources, archs=["sim", "compute_80"])
    assert len(rows) == 4
    assert "compiling" in terminal.getvalue()

    for number, source in enumerate(sources):
        (tmp_path / f"{number}.cu").write_text(source)
    terminal.truncate(0)
    _lint.lint_files([str(tmp_path / "0.cu"), str(tmp_path / "1.cu")], kw.ProgramOptions())
    assert "checking" in terminal.getvalue()

    terminal.truncate(0)
    assert list(_progress.steps("walking", [1, 2, 3])) == [1, 2, 3]
    assert "walking" in terminal.getvalue()


def test_an_interrupt_during_a_pack_ends_it(monkeypatch, tmp_path):
    def stop(self, total=None):
        raise KeyboardInterrupt

    monkeypatch.setattr(_progress.Progress, "advance", stop)
    with pytest.raises(KeyboardInterrupt):
        kw.pack(tmp_path / "none.kwpack", ["__global__ void f() {}"], archs=["sim"])
    assert not list(tmp_path.iterdir())


def test_short_work_a_file_and_the_last_step_show_nothing(monkeypatch):
    terminal = on_terminal(monkeypatch)
    count_to(5)  # far below a second
    assert terminal.getvalue() == ""
    monkeypatch.setattr(_progress, "PATIENCE", 0)
    count_to(1)  # it is over
    assert terminal.getvalue() == ""
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    count_to(5)
    assert sys.stderr.getvalue() == ""
    monkeypatch.setattr(sys, "stderr", None)  # pythonw has none
    count_to(5)


def test_without_rich_the_work_goes_on(monkeypatch):
    terminal = on_terminal(monkeypatch)
    monkeypatch.setattr(_progress, "PATIENCE", 0)
    for name in ("rich", "rich.console", "rich.progress"):
        monkeypatch.setitem(sys.modules, name, None)
    count_to(3)
    assert terminal.getvalue() == ""


def test_an_error_ends_the_bar(monkeypatch):
    on_terminal(monkeypatch)
    pytest.importorskip("rich")
    monkeypatch.setattr(_progress, "PATIENCE", 0)
    with pytest.raises(ZeroDivisionError), _progress.Progress("failing", 5) as progress:
        progress.advance()
        progress.advance()
        raise ZeroDivisionError
    count_to(3)  # rich allows one live bar at a time: the first one is gone
