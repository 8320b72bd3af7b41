"""bench/roofline.py: points from the documents of products and attention."""

import importlib.util
import json
import pathlib

import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"
spec = importlib.util.spec_from_file_location("roofline", BENCH / "roofline.py")
roofline = importlib.util.module_from_spec(spec)
spec.loader.exec_module(roofline)

MACHINE = {"device": "NVIDIA H100 80GB HBM3"}
HEADS = {"batch": 2, "heads": 8, "kv_heads": 2, "dim": 64}
ROWS = {
    "gemm": [
        {"shape": [64, 32, 16], "dtype": "bfloat16", "correct": True, "ours": {"us": 2.0},
         "torch": {"error": "no cuBLAS"}},
        {"shape": [64, 32, 16], "dtype": "bfloat16", "correct": False, "ours": {"us": 1.0}},
    ],
    "gemv": [{"m": 1, "n": 64, "k": 32, "weights": "int8", "correct": True, "ours": {"us": 4.0}}],
    "gemv_formats": [
        {"m": 2, "n": 64, "k": 32, "weights": "q4_k", "bytes": 1152, "correct": True,
         "ours": {"us": 4.0}, "torch linear bfloat16": {"us": 5.0}},
    ],
    "grouped": [
        {"rows": 6, "n": 64, "k": 32, "experts": 8, "correct": True,
         "figures": {"ours": {"us": 2.0, "TB/s of weights": 0.004096},
                     "ours with SwiGLU": {"us": 1.0}, "torch._grouped_mm": {"us": 4.0}}},
    ],
    "attention": [
        {"subject": "forward", "queries": 128, "keys": 128, "causal": True, "correct": True,
         "ours": {"us": 8.0}, **HEADS},
        {"subject": "backward", "queries": 128, "keys": 128, "causal": False, "correct": True,
         "ours": {"us": 8.0}, **HEADS},
    ],
    "decode_attention": [
        {"subject": "decode", "queries": 1, "keys": 512, "causal": False, "correct": True,
         "ours, float8": {"us": 2.0}, "ours, 4 splits": {"us": 1.0}, "torch flash": {"us": 2.0},
         **HEADS},
    ],
}  # fmt: skip


def test_points(capsys):
    made = {subject: list(roofline.make_points(subject, {"rows": ROWS[of.document]}))
            for subject, of in roofline.SUBJECTS.items()}  # fmt: skip
    flops = 2 * 64 * 32 * 16
    assert made["gemm"] == [("ours", flops / (2 * (64 * 16 + 16 * 32 + 64 * 32)), flops / 2e6)]
    assert made["gemv"][0].intensity == 2 * 64 * 32 / (64 * 32 + 2 * (32 + 64))
    forward, backward = made["attention"]
    small, decode = made["decode"]
    queries = 2 * 8 * 64
    assert (forward.who, backward.who) == ("ours", "ours, backward")
    assert backward.rate == 10 * queries * 128 * 128 / 8e6
    assert forward.rate == 4 * queries * 128 * 128 / 2 / 8e6
    assert decode.intensity == 4 * queries * 512 / (2 * 2 * 2 * 2 * 512 * 64 + 4 * queries)
    assert small.intensity > 1.9 * decode.intensity and small.rate == decode.rate
    packed, linear = made["packed"]
    assert packed.intensity == 2 * 2 * 64 * 32 / (1152 + 2 * 2 * (32 + 64))
    assert linear.intensity == 2 * 2 * 64 * 32 / (2 * 64 * 32 + 2 * 2 * (32 + 64))
    ours, theirs = made["grouped"]  # two of the experts have rows: 2 * 64 * 32 weights
    assert ours.intensity == theirs.intensity == 2 * 6 * 64 * 32 / (8192 + 2 * 6 * (32 + 64))
    assert (ours.who, ours.rate) == ("ours", 2 * theirs.rate)
    told = capsys.readouterr().err
    assert "no cuBLAS" in told and "row 1 was wrong" in told


def test_pictures(tmp_path, capsys):
    for subject, rows in ROWS.items():
        text = json.dumps({"subject": subject, "machine": MACHINE, "rows": rows})
        (tmp_path / f"{subject}.json").write_text(text)
    where = ["-r", str(tmp_path), "-o", str(tmp_path / "pictures")]
    assert roofline.main(where) == 0
    pictures = {path.name: path.read_text() for path in (tmp_path / "pictures").iterdir()}
    assert sorted(pictures) == [f"roofline_{s}.svg" for s in sorted(roofline.SUBJECTS)]
    assert all("989.4 TFLOP/s" in each and "H100" in each for each in pictures.values())
    roofline.main(["gemm", *where])
    assert (tmp_path / "pictures" / "roofline_gemm.svg").read_text() == pictures[
        "roofline_gemm.svg"
    ]
    (tmp_path / "gemm.json").write_text(json.dumps({"machine": MACHINE, "rows": []}))
    (tmp_path / "gemv.json").unlink()
    roofline.main(["gemm", "gemv", *where])
    told = capsys.readouterr()
    assert "nothing was timed" in told.out and "there is no" in told.err


def test_devices():
    assert roofline.read_roofs("NVIDIA H100 PCIe") == (756.0, 2.0)
    assert roofline.read_roofs("NVIDIA H100 80GB HBM3") == (989.4, 3.35)
    assert roofline.read_roofs("NVIDIA H200") == (989.4, 4.8)
    assert roofline.read_roofs("another") is None
