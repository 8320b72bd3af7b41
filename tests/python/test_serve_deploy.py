"""Files for operators: what they name is there."""

import argparse
import itertools
import json
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

import pytest
from prometheus_client.parser import text_string_to_metric_families
from serving import TINY, WritingEngine, serving

from kernwright import llm
from kernwright.cli.serve import add_arguments

ROOT = pathlib.Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
NAME = re.compile(r"\b(?:vllm|kernwright):\w+")


@pytest.fixture(scope="module")
def families():
    """The metrics of a server that has answered a chat."""
    with serving(WritingEngine(llm.load(TINY), "x")) as client:
        ask = {"messages": [{"role": "user", "content": "Hi"}]}
        assert client.post("/v1/chat/completions", ask)[0] == 200
        text = client.ask("GET", "/metrics")[2].decode()
    return list(text_string_to_metric_families(text))


@pytest.fixture(scope="module")
def dashboard():
    return json.loads((DEPLOY / "grafana.json").read_text())


def shown_name(family):
    return f"{family.name}_total" if family.type == "counter" else family.name


def parsed(words):
    """Arguments of kernwright serve, by its own parser."""
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_arguments(parser)
    return parser.parse_args(words)


def test_the_page_of_metrics_has_them_all(families):
    rows = re.findall(r"^\| `(\S+?)` \| (\w+) \|", (ROOT / "docs/metrics.md").read_text(), re.M)
    told = [
        (shown_name(each), each.type) for each in families if not each.name.endswith("_created")
    ]
    assert sorted(rows) == sorted(told)


def test_metrics_that_docs_and_dashboard_ask_for_are_there(families, dashboard):
    names = {sample.name for family in families for sample in family.samples}
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    shown = set(itertools.chain.from_iterable(map(NAME.findall, expressions)))
    expressions += re.findall(
        r"^\| [^|`]*\| `([^`]+)`", (ROOT / "docs/metrics.md").read_text(), re.M
    )
    assert len(expressions) > 20
    asked = set(itertools.chain.from_iterable(map(NAME.findall, expressions)))
    assert asked <= names, asked - names
    on_panels = {re.sub("_(bucket|sum|count)$", "", each) for each in shown}
    assert {shown_name(each) for each in families if "_created" not in each.name} <= on_panels
    labels = {label for family in families for sample in family.samples for label in sample.labels}
    for text in expressions:
        used = re.findall(r"[{,]\s*(\w+)\s*=", text)
        used += ",".join(re.findall(r"by \(([^)]*)\)", text)).replace(" ", "").split(",")
        assert {each for each in used if each} <= labels, text
        assert text.count("(") == text.count(")") and text.count("{") == text.count("}")


def test_panels_of_the_dashboard_do_not_overlap(dashboard):
    panels = dashboard["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels) > 10
    places = [panel["gridPos"] for panel in panels]
    assert all(place["x"] + place["w"] <= 24 for place in places)
    for a, b in itertools.combinations(places, 2):
        apart = (
            a["x"] + a["w"] <= b["x"] or b["x"] + b["w"] <= a["x"]
            or a["y"] + a["h"] <= b["y"] or b["y"] + b["h"] <= a["y"]
        )  # fmt: skip
        assert apart, (a, b)
    variables = {f"${each['name']}" for each in dashboard["templating"]["list"]}
    used = re.findall(r"\$\{?([a-z]+)\}?", json.dumps(panels))
    assert {f"${each}" for each in used} <= variables


def test_the_unit_starts_a_server(tmp_path):
    text = (DEPLOY / "kernwright.service").read_text()
    program, command, *words = shlex.split(re.search("^ExecStart=(.*)$", text, re.M)[1])
    assert program.endswith("/bin/kernwright") and command == "serve"
    arguments = parsed(words)
    assert arguments.model.startswith("/") and arguments.api_key_file
    assert float(re.search(r"^TimeoutStopSec=(\d+)$", text, re.M)[1]) > arguments.drain_timeout + 5
    assert f"LoadCredential={pathlib.Path(arguments.api_key_file[0]).name}:" in text
    analyze = shutil.which("systemd-analyze")
    if analyze is not None:
        unit = tmp_path / "kernwright.service"
        unit.write_text(text.replace(program, sys.executable))
        found = subprocess.run([analyze, "verify", unit], capture_output=True, text=True)
        about = [line for line in found.stderr.splitlines() if "kernwright.service" in line]
        assert found.returncode == 0 and not about, found.stderr


def test_the_container_starts_a_server_and_has_the_driver_alone():
    text = (DEPLOY / "Containerfile").read_text().replace("\\\n", "")
    program, command, *words = json.loads(re.search("^ENTRYPOINT (.*)$", text, re.M)[1])
    assert (program, command) == ("kernwright", "serve")
    arguments = parsed([*words, *json.loads(re.search("^CMD (.*)$", text, re.M)[1])])
    assert arguments.host == "0.0.0.0" and arguments.model == "/model"
    assert f"EXPOSE {arguments.port}\n" in text and f":{arguments.port}/health/live" in text
    extras = re.search(r"kernwright\[([\w,]+)\]", text)[1].split(",")
    known = re.findall(r"^(\w+) = \[", (ROOT / "pyproject.toml").read_text(), re.M)
    assert set(extras) <= set(known)
    (base,) = re.findall("^FROM (.*)$", text, re.M)
    assert "cuda" not in base and "nvidia" not in base
