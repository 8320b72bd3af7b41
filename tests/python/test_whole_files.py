"""Files that are replaced only by a whole text."""

import os
import subprocess
import sys

import pytest

import kernwright as kw
from kernwright._support.files import read_bytes, write_whole


def test_a_file_is_replaced_and_a_link_stays(tmp_path):
    (tmp_path / "real").write_text("before, and longer")
    (tmp_path / "link").symlink_to("real")
    write_whole(tmp_path / "link", "after")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real").read_text() == "after"
    assert sorted(os.listdir(tmp_path)) == ["link", "real"]


def test_what_others_write_to_standard_output_stays(tmp_path):
    program = (
        "from kernwright._support.files import write_whole\n"
        "print('first', flush=True); write_whole('/dev/stdout', 'whole\\n'); print('last')"
    )
    log = tmp_path / "log"
    log.write_text("before\n")
    with open(log, "a") as file:
        subprocess.run([sys.executable, "-c", program], stdout=file, check=True, timeout=60)
    assert log.read_text() == "before\nfirst\nwhole\nlast\n"


def test_refusals_leave_what_was_there(tmp_path):
    with pytest.raises(kw.StoreError, match="absent"):
        write_whole(tmp_path / "absent" / "file", "text")
    (tmp_path / "file").write_text("before")
    with pytest.raises(UnicodeEncodeError):
        write_whole(tmp_path / "file", "\udcff")
    assert (tmp_path / "file").read_text() == "before" and os.listdir(tmp_path) == ["file"]
    with pytest.raises(kw.InvalidArgument, match="no path"):
        write_whole("\ud800", "text")
    with pytest.raises(kw.InvalidArgument, match="no path"):
        read_bytes("a\0b")
    write_whole(os.fsencode(tmp_path / "file"), "bytes name it, too")
    assert read_bytes(os.fsencode(tmp_path / "file")) == b"bytes name it, too"
