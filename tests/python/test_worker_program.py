"""The program of worker processes that lies beside the extension."""

import os
import shutil
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from compile_children import child

import kernwright as kw

EXTENSION = Path(kw._core.__file__)
PROGRAM = EXTENSION.with_name("kernwright-worker")


def field(data):
    return struct.pack("<I", len(data)) + data


def ask(command, name, request):
    """The reply of a new worker to one task, behind its empty log, and its exit code."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        process = os.posix_spawn(
            command[0],
            command,
            os.environ,
            file_actions=[(os.POSIX_SPAWN_DUP2, theirs.fileno(), 3)],
        )
        theirs.close()
        ours.settimeout(60)
        body = field(name) + b"\0" + field(request)  # and no log
        ours.sendall(b"KWM1" + struct.pack("<IQ", 0, len(body)) + body)
        reply = b""
        while part := ours.recv(1 << 16):
            reply += part
            if len(reply) >= 16 and len(reply) == 16 + struct.unpack("<Q", reply[8:16])[0]:
                break
    return reply[20:], os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def test_it_is_a_small_program_that_answers_and_ends_with_its_parent():
    assert os.access(PROGRAM, os.X_OK)
    assert PROGRAM.stat().st_size < 100_000
    reply, code = ask([str(PROGRAM)], b"ping", b"hello")
    assert reply.endswith(b"hello") and code == 0


def test_it_holds_a_device(monkeypatch):
    monkeypatch.setenv("KERNWRIGHT_DEVICE", "sim")
    request = struct.pack("<QQ", 1 << 20, 256)
    reply, code = ask([str(PROGRAM)], b"device.allocate", request)
    assert code == 0
    assert reply.endswith(struct.pack("<Q", 1)), "the first buffer"


def test_it_serves_from_any_folder_and_says_what_is_wrong_with_one(tmp_path):
    folder = tmp_path / "with space \u00e9"
    folder.mkdir()
    program = shutil.copy(PROGRAM, folder)
    missing = subprocess.run([program], capture_output=True, text=True)
    assert missing.returncode == 127 and EXTENSION.name in missing.stderr
    shutil.copy(EXTENSION, folder)
    assert ask([program], b"ping", b"")[1] == 0


def test_by_hand_it_says_that_it_is_not_for_that():
    done = subprocess.run(
        [PROGRAM], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60
    )
    assert done.returncode == 1
    assert "starts by itself" in done.stderr


@pytest.mark.parametrize("spoil", ["chmod", "remove", "nothing"])
def test_a_package_whose_program_lost_its_mode_or_itself_has_workers_too(spoil, tmp_path):
    package = tmp_path / "kernwright"
    shutil.copytree(EXTENSION.parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    program = package / PROGRAM.name
    if spoil == "chmod":
        program.chmod(0o644)
    elif spoil == "remove":
        program.unlink()
    with child(
        """
    bomb = kw.kernel(BOMB, defines={"DEPTH": 17})
    try:
        bomb.compile(timeout=1)
    except kw.Timeout:
        print("timeout", at_rest())
    kw.kernel("__global__ void k() {}").compile()
    print(kw.__file__, len(workers()))
    """,
        PYTHONPATH=str(tmp_path),
        KERNWRIGHT_CACHE="off",
    ) as process:
        out, err = process.communicate(timeout=100)
    assert (process.returncode, err) == (0, "")
    assert out.split() == ["timeout", "True", str(package / "__init__.py"), "1"]


@pytest.mark.skipif(not sys.executable, reason="no interpreter to start")
def test_an_interpreter_can_stand_in_for_it():
    code = f"import ctypes; ctypes.CDLL({str(EXTENSION)!r}).kernwright_worker_main(0, None)"
    reply, code = ask([sys.executable, "-I", "-S", "-c", code], b"ping", b"x")
    assert reply.endswith(b"x") and code == 0
