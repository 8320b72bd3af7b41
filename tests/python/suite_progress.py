"""A pytest plugin: a line of progress in each period, and the slowest tests at the end.

`-p suite_progress --progress 60`. Under xdist only the controller prints.
"""

import collections
import os
import sys
import threading
import time

import pytest

SLOWEST = 15
SHOWN_RUNNING = 4


def pytest_addoption(parser):
    parser.addoption(
        "--progress",
        type=float,
        default=0.0,
        metavar="SECONDS",
        help="in place of a letter for each test a line in this time, and the slowest tests",
    )


def pytest_configure(config):
    if config.getoption("--progress") > 0 and not hasattr(config, "workerinput"):
        config.pluginmanager.register(SuiteProgress(config), "suite-progress-lines")


def seconds(duration):
    return f"{duration:.0f} s" if duration >= 10 else f"{duration:.1f} s"


class SuiteProgress:
    """Counts what the workers report. A thread writes the lines: a hanging test reports nothing."""

    def __init__(self, config, clock=time.monotonic):
        self.period = config.getoption("--progress")
        self.clock = clock
        self.begin = clock()
        self.total = self.done = self.failed = 0
        self.running = {}
        self.durations = collections.Counter()
        self.stop = threading.Event()
        self.lock = threading.Lock()
        # Within a test the usual output is captured; here it is not yet.
        self.output = os.dup(sys.stdout.fileno())

    def write(self, text):
        os.write(self.output, f"{text}\n".encode())

    def line(self):
        """ "37 %: 4912 of 13258 tests, 0 failed, 184 s; running: a (12 s), b (3 s)"."""
        with self.lock:
            now, total = self.clock(), max(self.total, self.done)
            running = sorted(self.running.items(), key=lambda item: item[1])
            tests = [f"{name} ({seconds(now - since)})" for name, since in running]
            share = int(100 * self.done / total) if total else 0
            told = f"{share} %: {self.done} of {total} tests, {self.failed} failed, "
            told += seconds(now - self.begin)
        if not self.total:
            return f"collecting tests, {seconds(now - self.begin)}"
        if not tests:
            return told
        more = f" and {len(tests) - SHOWN_RUNNING} more" if len(tests) > SHOWN_RUNNING else ""
        return f"{told}; running: {', '.join(tests[:SHOWN_RUNNING])}{more}"

    def tell(self):
        while not self.stop.wait(self.period):
            self.write(self.line())

    def pytest_sessionstart(self):
        threading.Thread(target=self.tell, daemon=True).start()

    def pytest_sessionfinish(self):
        self.stop.set()

    def pytest_collection_finish(self, session):
        self.total = max(self.total, len(session.items))

    @pytest.hookimpl(optionalhook=True)  # xdist has it: the controller collects nothing itself
    def pytest_xdist_node_collection_finished(self, ids):
        self.total = len(ids)

    def pytest_runtest_logstart(self, nodeid):
        with self.lock:
            self.running[nodeid] = self.clock()

    def pytest_runtest_logreport(self, report):
        with self.lock:
            self.durations[report.nodeid] += getattr(report, "duration", 0.0)
            self.failed += report.failed
            if report.when not in ("setup", "call", "teardown"):  # its worker ended with it
                self.running.pop(report.nodeid, None)
                self.done += 1

    def pytest_runtest_logfinish(self, nodeid):
        with self.lock:
            self.done += self.running.pop(nodeid, None) is not None

    def pytest_report_teststatus(self, report):
        if report.passed or report.skipped:
            is_result = report.when == "call" or report.skipped
            return (report.outcome if is_result else ""), "", ""
        return None

    def pytest_terminal_summary(self, terminalreporter):
        slowest = self.durations.most_common(SLOWEST)
        if slowest:
            terminalreporter.write_sep("=", f"slowest {len(slowest)} tests")
        for name, duration in slowest:
            terminalreporter.write_line(f"{duration:8.2f} s  {name}")
