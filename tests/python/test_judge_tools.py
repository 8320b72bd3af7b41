"""The tools of agents: as methods, and over the protocol by a server in its own process."""

import asyncio
import inspect
import json
import os
import pathlib
import subprocess
import sys

import pytest
from judge_tasks import AFFINE, GOOD, RELU

import kernwright as kw
from kernwright._judging.server import NAMES, make_server
from kernwright._judging.tools import Tools
from kernwright.cli import UsageError
from kernwright.cli.mcp import load_tasks

TASK_FILE = """
import kernwright as kw
task = kw.Task(
    entry="affine",
    signature="const float* x, float* y, int n",
    inputs=kw.Inputs(x="float32[n]", y="float32[n]", n="size", most=600),
    reference=lambda x, y, n: (None, 2.0 * x + 1, None),
)
print("noise")
"""


@pytest.fixture(scope="module")
def tools():
    with kw.Judge(1) as judge:
        yield Tools({"affine": AFFINE, "relu": RELU}, judge)


def test_tasks_are_listed(tools):
    assert [task["name"] for task in tools.tasks()] == ["affine", "relu"]
    assert tools.tasks()[0]["signature"] == AFFINE.signature
    with pytest.raises(kw.InvalidArgument, match="there is: affine, relu"):
        tools.judge(GOOD, "other")
    with pytest.raises(kw.InvalidArgument):
        tools.judge(GOOD)  # which of the two?
    with pytest.raises(kw.InvalidArgument):
        Tools({}, None)


def test_compile(tools):
    answer = tools.compile(GOOD)
    assert answer["compiled"] and answer["kernels"] == ["affine"]
    answer = tools.compile(GOOD.replace("x[i]", "z[i]"), arch="compute_80")
    assert not answer["compiled"] and answer["diagnostics"][0]["line"] == 3
    for text in ('#include "/etc/passwd"\n' + GOOD, ""):
        answer = tools.compile(text)
        assert not answer["compiled"] and "root:" not in json.dumps(answer)
    assert not tools.compile(GOOD, arch="sm_1")["compiled"]


def test_check_and_judge(tools):
    answer = tools.check(GOOD.replace("i < n", "i <= n"), "affine")
    assert answer["status"] == "finding" and answer["findings"][0]["line"] == 3
    answer = tools.judge(GOOD, "affine", baseline=GOOD)
    assert answer["status"] == "accepted" and answer["cases"] == []
    assert answer["correct_cases"] >= 8 and answer["speedup"] > 0
    json.dumps(answer)


def test_profile(tools):
    lines = tools.profile(GOOD, "affine", lines=2)
    assert len(lines) == 2
    assert any(line["line"] == 3 and line["global_stores"] > 0 for line in lines)
    with pytest.raises(kw.InvalidArgument, match="case="):
        tools.profile(GOOD, "affine", case=8)
    with pytest.raises(kw.InvalidArgument, match="nothing to profile"):
        tools.profile("nonsense", "affine")


def test_tune(tools):
    text = GOOD.replace("2 * x[i] + 1", "work(x[i])")
    text = "#if N > 2\n#error too many\n#endif\n__device__ float work(float v) {\n" + (
        "  for (volatile int k = 0; k < N; ++k) {}\n  return 2 * v + 1 + (N == 0);\n}\n" + text
    )
    answer = tools.tune(text, {"N": [0, 1, 2, 3]}, "affine")
    assert answer["configurations"] == 4
    assert {t["config"]["N"]: t["status"] for t in answer["trials"]} == {
        0: "wrong", 1: "accepted", 2: "accepted", 3: "compile",
    }  # fmt: skip
    assert answer["best"]["config"] == {"N": 1} or not kw.current_device().is_simulated
    answer = tools.tune(text, {"N": [0, 3]}, "affine", restrictions=["N < 3"])
    assert answer["best"] is None and len(answer["trials"]) == 1
    with pytest.raises(kw.InvalidArgument, match="evaluations"):
        tools.tune(text, {"N": [1]}, "affine", evaluations=0)


def test_tune_tells_of_parameters_that_make_no_difference(tools):
    text = GOOD.replace("2 * x[i]", "TWO * x[i]")
    answer = tools.tune(text, {"TWO": [2], "UNROLL": [1, 2]}, "affine", evaluations=1)
    assert answer["best"] is not None
    assert answer["warnings"] == ["the text does not use UNROLL: its values make no difference"]
    assert "warnings" not in tools.tune(text, {"TWO": [2]}, "affine")
    with pytest.raises(kw.InvalidArgument, match="parameter n has the name of"):
        tools.tune(text, {"TWO": [2], "n": [1]}, "affine")


def test_every_tool_says_what_it_does(tools):
    pytest.importorskip("mcp")  # `make test` has it: see tests/lint/test_tools.py
    listed = asyncio.run(make_server(tools).list_tools())
    assert [tool.name for tool in listed] == list(NAMES)
    for tool in listed:
        assert len(tool.description) > 40
        parameters = inspect.signature(getattr(Tools, tool.name)).parameters
        assert set(tool.input_schema["properties"]) == set(parameters) - {"self"}


def test_the_server_over_its_protocol(tmp_path):
    mcp = pytest.importorskip("mcp")

    (tmp_path / "task.py").write_text(TASK_FILE)
    server = mcp.StdioServerParameters(
        command=sys.executable,
        args=["-m", "kernwright", "mcp", str(tmp_path / "task.py")],
        env=dict(os.environ),
    )

    async def talk():
        async with mcp.Client(server) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            good = await client.call_tool("judge", {"source": GOOD})
            bad = await client.call_tool("judge", {"source": GOOD, "task": "other"})
            return names, good, bad

    names, good, bad = asyncio.run(asyncio.wait_for(talk(), 120))
    assert names == list(NAMES)
    assert json.loads(good.content[0].text)["status"] == "accepted"
    assert bad.is_error and "there is no task 'other'" in bad.content[0].text


def test_two_tasks_of_one_name_are_refused(tmp_path):
    paths = [tmp_path / folder / "task.py" for folder in ("a", "b")]
    for path in paths:
        path.parent.mkdir()
        path.write_text(TASK_FILE)
    with pytest.raises(UsageError, match="two task files are named task"):
        load_tasks(list(map(str, paths)))
    assert list(load_tasks([str(paths[0])])) == ["task"]


def test_the_example_judges_its_kernels():
    folder = pathlib.Path(__file__).resolve().parents[2] / "examples" / "judge"
    command = [sys.executable, "kernelbench.py", "softmax_task.py"]

    def run(kernel):
        return subprocess.run(
            [*command, kernel], cwd=folder, capture_output=True, text=True, timeout=300
        )

    right, racing = run("softmax.cu"), run("softmax_racing.cu")
    assert right.returncode == 0 and "accepted" in right.stdout, right.stderr
    assert racing.returncode == 1 and ": finding: " in racing.stdout
    assert "line 9" in racing.stdout
