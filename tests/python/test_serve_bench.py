"""The benchmarks of the server run, in a small way: figures, and clients that do wrong things."""

import json
import pathlib
import subprocess
import sys

import pytest

pytestmark = pytest.mark.usefixtures("sim")
BENCH = pathlib.Path(__file__).parents[2] / "bench"


def run(name, path, *options):
    """The document that a benchmark writes."""
    command = [sys.executable, str(BENCH / name), *options, "-o", str(path)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert found.returncode == 0, found.stdout[-2000:] + found.stderr[-2000:]
    return json.loads(path.read_text())


def test_figures(tmp_path):
    options = ("--parts", "load,bare", "--in-flight", "2", "--prompt", "16", "--tokens", "3")
    made = run("serve.py", tmp_path / "serve.json", *options)
    assert made["load"]["2"]["tokens_per_second"] > 0
    assert made["load"]["2"]["first_token_mean_ms"] > 0
    share = made["load"]["2"]["tokens_per_second"] / made["bare"]["2"]["tokens_per_second"]
    assert made["share_of_bare"]["2"] == pytest.approx(share, abs=1e-3)


def test_nothing_is_left_of_clients_that_do_wrong_things(tmp_path):
    made = run("serve_soak.py", tmp_path / "soak.json", "--rounds", "2", "--disconnects", "8")
    assert made["rounds"] == 2 and made["last"]["refused"] > 0
    assert made["reasons"]["disconnected"] > 0 and made["reasons"]["queue_full"] > 0
    last = made["last"]
    assert last["started"] == last["finished"] + last["aborted"] + last["failed"]


def test_calls_of_the_driver_fail_under_load(tmp_path):
    made = run("serve_faults.py", tmp_path / "faults.json", "--rounds", "4")
    assert made["rounds"] == 4 and sum(made["ends"].values()) == 24
    assert made["ends"]["finished"] > 0 and made["ends"]["status 500"] > 0
    assert made["reasons"]["error"] > 0


def test_all_that_goes_wrong_at_once(tmp_path):
    """Two lives of a server: its device is lost in the first round."""
    options = ("--seconds", "0", "--rounds", "2", "--first", "59", "--disconnects", "4")
    made = run("serve_endurance.py", tmp_path / "endurance.json", *options)
    assert made["rounds"] == 2 and made["starts"] == 2
    clients = made["clients"]
    assert clients["losses of the device"] == 1 and clients["disconnects"] == 8
    assert sum(made["reasons"].values()) >= clients["answers"] > 0
    assert made["reasons"]["disconnected"] > 0
    last = made["last"]
    assert last["started"] == last["finished"] + last["aborted"] + last["failed"]
