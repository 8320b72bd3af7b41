"""A server of a tiny model in a process of its own: health, a stream of text, the numbers, the end.

Clients of OpenAI work the same; this one is the standard library.
"""

import http.client
import importlib.util
import json
import pathlib
import re
import signal
import subprocess
import sys

MODEL = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "tiny_llama"

for package in ("tokenizers", "jinja2", "starlette", "uvicorn", "msgspec", "prometheus_client"):
    if importlib.util.find_spec(package) is None:
        print(f"nothing to show without {package}: pip install 'kernwright[llm,serve]'")
        raise SystemExit(0)


def ask(port, method, path, body=None):
    """The answer to a request."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    connection.request(method, path, None if body is None else json.dumps(body))
    return connection.getresponse()


def texts(answer):
    """The pieces of a streamed completion."""
    for line in answer:
        if line.startswith(b"data: {"):
            yield json.loads(line[6:])["choices"][0]["text"]


command = [sys.executable, "-m", "kernwright", "serve", str(MODEL), "--port", "0"]
server = subprocess.Popen(
    [*command, "--max-rows", "4", "--drain-timeout", "30"], stderr=subprocess.PIPE, text=True
)
try:
    while not (found := re.search(r"served at http://.*:(\d+)", server.stderr.readline())):
        assert server.poll() is None, "the server did not start"
    port = int(found[1])
    while True:
        try:
            print("ready:", ask(port, "GET", "/health/ready").status == 200)
            break
        except ConnectionError:
            pass
    prompt = {"prompt": "def f(x):", "max_tokens": 12, "temperature": 0, "stream": True}
    print("".join(texts(ask(port, "POST", "/v1/completions", prompt))))
    wrong = ask(port, "POST", "/v1/completions", {"prompt": "a", "temperature": 3})
    print(wrong.status, json.loads(wrong.read())["error"]["message"])
    for line in ask(port, "GET", "/metrics").read().decode().splitlines():
        if line.startswith("vllm:generation_tokens_total"):
            print(line)
    server.send_signal(signal.SIGTERM)
    print("ended with", server.wait(60))
finally:
    server.kill()
