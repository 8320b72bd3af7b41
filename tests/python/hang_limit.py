"""A pytest plugin: ends a test that holds the interpreter, where no signal reaches Python.

`-p hang_limit --hang-limit 900`. Under xdist the end of the worker names its test. The setting
faulthandler_timeout does the same with a thread for each test, which takes longer than most tests
beside other work. Here tests that follow each other within a minute share one.
"""

import faulthandler
import math
import os
import sys
import time

import pytest

SHARE = 1 / 15  # of the limit: for so long a watch is not begun anew


def pytest_addoption(parser):
    parser.addoption(
        "--hang-limit",
        type=float,
        default=0.0,
        metavar="SECONDS",
        help="end the process of a test that runs for so long (at most a fifteenth less)",
    )


def pytest_configure(config):
    if config.getoption("--hang-limit") > 0:
        config.pluginmanager.register(HangLimit(config), "hang-limit-watch")


class HangLimit:
    """One watch of the process, begun by a test if the last one was begun long before."""

    def __init__(self, config, clock=time.monotonic):
        self.limit = config.getoption("--hang-limit")
        self.clock = clock
        self.begin = -math.inf
        # Within a test the usual error output is captured; here it is not yet.
        self.output = os.dup(sys.__stderr__.fileno())

    def cancel(self):
        faulthandler.cancel_dump_traceback_later()
        self.begin = -math.inf

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_protocol(self):
        now = self.clock()
        if now - self.begin > SHARE * self.limit:
            faulthandler.dump_traceback_later(self.limit, file=self.output, exit=True)
            self.begin = now
        return (yield)

    def pytest_enter_pdb(self):
        self.cancel()

    def pytest_exception_interact(self):
        self.cancel()

    def pytest_sessionfinish(self):
        self.cancel()
