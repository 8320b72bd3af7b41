"""Runs suites: processes whose output is counted, one after the other or beside each other.

A suite is (title, command, count): `count` takes the lines of the output and returns the numbers of
tests that passed and failed. Ctrl-C ends what runs, in every row.
"""

import concurrent.futures
import contextlib
import os
import signal
import subprocess
import threading
import time

LOST = "========= Error: couldn't find exit code"  # an occasional message of compute-sanitizer


class Running:
    """The processes of the suites that run now. Safe from any thread."""

    def __init__(self):
        self.lock = threading.Lock()
        self.processes = set()
        self.ended = False

    @contextlib.contextmanager
    def process(self, command, env):
        """Starts a command. Raises KeyboardInterrupt after end()."""
        with self.lock:
            if self.ended:
                raise KeyboardInterrupt
            started = subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                env=env,
                start_new_session=True,
            )
            self.processes.add(started)
        with started:
            try:
                yield started
            except BaseException:  # Ctrl-C does not reach a suite in a session of its own
                kill_group(started)
                raise
            finally:
                with self.lock:
                    self.processes.discard(started)

    def end(self):
        """Kills what runs; nothing begins afterwards."""
        with self.lock:
            self.ended = True
            for process in self.processes:
                kill_group(process)


def kill_group(process):
    """Ends the processes of a suite."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def how_it_ended(code):
    if code >= 0:
        return f"exit code {code}"
    return f"killed by {signal.Signals(-code).name} (the last lines above tell what ran)"


def run(suite, env, running, live, again=True):
    """Runs one suite, shows its output live or at its end, and returns (passed, failed)."""
    title, command, count = suite
    start = time.monotonic()
    lines = []
    shown = []
    show = (lambda text: print(text, end="", flush=True)) if live else shown.append
    show(f"== {title}: {' '.join(command)}\n")
    with running.process(command, env) as process:
        for line in process.stdout:
            lines.append(line)
            if "[doctest] run with" not in line:
                show(line)
        process.wait()
    if any(LOST in line for line in lines) and again:
        show(f"{title}: the tool lost its program; once more\n")
        print("".join(shown), end="", flush=True)
        return run(suite, env, running, live, again=False)
    passed, failed = count(lines)
    if process.returncode != 0 and failed == 0:
        show(f"{title}: {how_it_ended(process.returncode)} with no failure counted\n")
        failed = 1
    if passed + failed == 0:
        show(f"{title}: ran no test\n")
        failed = 1
    show(f"== {title}: {passed} passed, {failed} failed in {time.monotonic() - start:.0f} s\n\n")
    print("".join(shown), end="", flush=True)
    return passed, failed


def run_rows(rows, at_once=None, live=True):
    """The results of the suites of all rows: each row holds pairs (suite, environment).

    The suites of a row follow each other; the rows run beside each other, `at_once` (all) at a
    time. The output of the first row is shown live, that of another suite at its end.
    """
    running = Running()

    def run_row(row, live):
        return [run(suite, env, running, live) for suite, env in row]

    with concurrent.futures.ThreadPoolExecutor(at_once or max(1, len(rows))) as pool:
        begun = []
        try:
            for row in rows:
                begun.append(pool.submit(run_row, row, live and row is rows[0]))
            for row in concurrent.futures.wait(begun, return_when="FIRST_EXCEPTION").done:
                row.result()
            return [result for row in begun for result in row.result()]
        except BaseException:
            running.end()
            for row in begun:
                row.cancel()
            raise
