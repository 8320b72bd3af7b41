"""bench/report.py: its tables of products and attention, from documents of the benchmarks."""

import importlib
import pathlib
import subprocess
import sys

import pytest

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"
MACHINE = {"device": "a GPU"}
PRODUCT = {
    "shape": [64, 32, 16], "layout": "nt", "error": 1.6e-3, "of torch": 1.5,
    "ours": {"us": 2.0, "TFLOP/s": 30.0}, "torch": {"us": 3.0, "TFLOP/s": 20.0},
}  # fmt: skip
HEADS = {"batch": 2, "heads": 8, "kv_heads": 2, "dim": 128, "causal": False, "correct": True}
DOCUMENTS = {
    "gemm": [{**PRODUCT, "dtype": "bfloat16"}],
    "gemm_types": [
        {**PRODUCT, "type": "tf32"},
        {**PRODUCT, "type": "fp8_blocks", "deep_gemm": {"us": 1.6, "TFLOP/s": 37.0},
         "of deep_gemm": 0.8},
        {**PRODUCT, "type": "int8", "torch": {"error": "not supported"}},
    ],
    "grouped": [
        {"layer": "8 experts up", "n": 96, "k": 72, "tokens": 16, "routing": "skewed", "error": 0.0,
         "of torch._grouped_mm": 1.25,
         "figures": {"ours": {"us": 8.0, "TFLOP/s": 4.0}, "torch._grouped_mm": {"us": 10.0},
                     "DeepGEMM": {"us": 12.0}}},
    ],
    "grouped_float8": [
        {"case": "masked", "groups": 2, "rows": 32, "n": 96, "k": 72, "error": 1e-3,
         "published": {"TFLOP/s": 5, "source": "a README"},
         "figures": {"ours": {"us": 8.0, "TFLOP/s": 4.0}, "ours, scales of rows": {"us": 9.0},
                     "ours, bfloat16": {"us": 15.0}, "torch._scaled_mm": {"us": 12.0},
                     "torch._scaled_grouped_mm": {"error": "not supported"},
                     "ours, scales of rows, fast sums": {"us": 7.0}, "DeepGEMM": {"us": 11.0},
                     "torch._scaled_mm, fast sums": {"us": 10.0}}},
        {"case": "routed", "groups": 2, "rows": 32, "n": 96, "k": 72, "error": 1e-3,
         "figures": {"ours": {"us": 8.0, "TFLOP/s": 4.0}, "ours, scales of rows": {"us": 9.0},
                     "ours, bfloat16": {"us": 15.0}}},
    ],
    "attention": [
        {"subject": "forward", "queries": 64, "keys": 64, **HEADS, "error": 2e-3,
         "ours": {"us": 2.0, "TFLOP/s": 600.0}, "torch cudnn": {"us": 2.4, "TFLOP/s": 500.0}},
    ],
    "decode_attention": [
        {"subject": "decode", "queries": 1, "keys": 512, **HEADS,
         "ours": {"us": 4.0, "TB/s": 2.5}, "ours, pages of 16": {"us": 5.0, "TB/s": 2.0},
         "ours, float8": {"us": 3.0, "TB/s": 1.7}, "ours, int8": {"us": 3.5, "TB/s": 1.4},
         "torch flash": {"us": 16.0, "TB/s": 0.6}, "torch cudnn": {"us": 8.0, "TB/s": 1.2}},
    ],
    "gemv": [
        {"weights": "int8", "n": 64, "k": 32, "m": 1, "error": 3e-3,
         "ours": {"us": 2.0, "TB/s": 2.0}},
        {"weights": "int8", "n": 64, "k": 32, "m": 8, "error": 3e-3,
         "ours": {"us": 2.5, "TB/s": 1.6}, "torch linear": {"us": 5.0, "TB/s": 0.8}},
    ],
    "gemv_formats": [
        {"weights": "nf4", "n": 64, "k": 32, "m": 1, "error": 3e-3, "correct": True,
         "ours": {"us": 2.0, "TB/s": 2.0}, "torch linear bfloat16": {"us": 5.0, "TB/s": 3.0}},
    ],
}  # fmt: skip
EXPECTED = {
    "products": ["| 64x32x16 nt, bfloat16 | 30 | 20 | 1.50 | 1.6e-03 |"],
    "typed_products": [
        "| 64x32x16 nt, tf32 | 30 | 20 | 1.50 |  |  | 1.6e-03 |",
        "| 64x32x16 nt, float8, scales of blocks | 30 | 20 | 1.50 | 37 | 0.80 | 1.6e-03 |",
    ],
    "grouped": [
        "| 8 experts up, 96 x 72, 16 tokens, skewed | 8 | 4 | 10 | 1.25 | 12 | 1.50 | 0.0e+00 |"
    ],
    "grouped_float8": [
        "| masked: 2 groups, 32 rows, 96 x 72 | 8 | 4 | 5 | 11 | 9 | 12 (_scaled_mm) | 7 | "
        "10 (_scaled_mm) | 15 | 1.0e-03 |",
        "| routed: 2 groups, 32 rows, 96 x 72 | 8 | 4 |  |  | 9 |  |  |  | 15 | 1.0e-03 |",
    ],
    "attention": ["| forward, 2 x 8 / 2 heads, 64 | 600 | 500 (cudnn) | 1.20 | 2.0e-03 |"],
    "decoding": [
        "| 2 x 8 / 2 heads, 1 x 512 | 4.0 | 2.50 | 5.0 | 3.0 | 3.5 | 8.0 (cudnn) | 2.00 | "
        "below the bound |"
    ],
    "few_rows": [
        "| int8, 64 x 32, 1 row | 2.0 | 2.00 | 1.00 |  |  | 3.0e-03 |",
        "| int8, 64 x 32, 8 rows | 2.5 | 1.60 | 0.80 | 5.0 (linear) | 2.00 | 3.0e-03 |",
    ],
    "packed_weights": [
        "| nf4, 64 x 32, 1 row | 2.0 | 2.00 | 5.0 (linear bfloat16) | 2.50 | 3.0e-03 |"
    ],
}


@pytest.fixture
def report(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCH))
    import report_arrays
    import report_products

    documents = {
        name: {"machine": MACHINE, "rows": rows, "note": f"About {name}."}
        for name, rows in DOCUMENTS.items()
    }
    for module in (report_arrays, report_products):
        monkeypatch.setattr(module, "load", documents.get)
    yield {**vars(report_arrays), **vars(report_products)}
    for name in ("report_arrays", "report_products", "report_text"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("name", EXPECTED)
def test_rows_with_a_peer_have_figures_and_their_error(report, name):
    title, _, head, bars, *rest = report[name]().splitlines()
    rows = [line for line in rest if line.startswith("|")]
    assert "a GPU" in title and rows == EXPECTED[name]
    assert len({line.count("|") for line in (head, bars, *rows)}) == 1
    assert any(line.startswith("About ") for line in rest)


def test_products_tell_their_mean(report):
    products = report["products"]
    document = products.__globals__["load"]("gemm")
    document["rows"] = [{**PRODUCT, "dtype": "x", "of torch": of} for of in (0.5, 2.0, 8.0)]
    document["rows"] += [{**PRODUCT, "dtype": "x", "shape": [65, 32, 16], "of torch": 4.0}]
    assert (
        "- x, beside torch (cuBLAS): geometric mean of the ratios 2.000, lowest 0.50" in products()
    )
    assert "- x, ragged, beside torch (cuBLAS): geometric mean of the ratios 4.000" in products()
    assert "warm L2, a GPU:" in products()
    document["cold"] = True
    assert "cold L2, a GPU:" in products()


@pytest.mark.parametrize("name", EXPECTED)
def test_without_a_document_there_is_no_table(report, monkeypatch, name):
    monkeypatch.setitem(report[name].__globals__, "load", lambda _: None)
    assert report[name]() is None


FIRST_CALL = {
    "processes at a time": 1,
    "machine": {"device": "a GPU", "processor": "a CPU", "processors": 16},
    "results": {
        "gemm": {"s": 0.4, "from a pack, s": 0.0012, "compiles": 1, "ready": 0.04},
        "attention": {"s": 1.5, "from a pack, s": 0.002, "compiles": 2, "ready": 0.04},
    },
    "pack": {"arch": "sm_90a", "codes": 3, "pack bytes": 2_500_000, "compressed bytes": 600_000},
}
PACKS = {"sm_80": {"codes": 2, "pack bytes": 1_000_000, "compressed bytes": 250_000}}
RULE = {
    "machine": MACHINE, "mean of measured": 1.04, "mean of the table": 1.012,
    "worst": [{"shape": "1x2x3", "types": "int8", "ratio": 1.2}],
    "types": {
        "int8": {"shapes": 10, "with a plan": 4, "measured": 2, "mean of measured": 1.04,
                 "mean": 1.0158},
        "float16": {"shapes": 9, "with a plan": 1, "measured": 0, "mean of measured": 1.0,
                    "mean": 1.0},
    },
}  # fmt: skip


@pytest.fixture
def kernels(monkeypatch, report):
    import report_kernels

    rows = [
        {
            **row,
            "subject": "backward",
            "ours": {"TFLOP/s": 528.3},
            "queries": 8192,
            "keys": 8192,
            "heads": 16,
            "causal": True,
        }
        for row in DOCUMENTS["attention"][:1]
    ]
    products = [{"type": "fp8_blocks", "shape": [4096, 7168, 16384], "ours": {"TFLOP/s": 1353.6}}]
    documents = {"first_call": FIRST_CALL, "choice_rule": RULE, "attention": {"rows": rows},
                 "gemm_types": {"rows": products}, "pack_size": {"results": PACKS}}  # fmt: skip
    monkeypatch.setattr(report_kernels, "load", documents.get)
    yield report_kernels
    sys.modules.pop("report_kernels", None)


def test_first_calls_and_packs(kernels):
    text = kernels.first_calls()
    assert (
        "one after the other, on 16 cores (a CPU), a GPU:" in text
        and "| gemm | 0.40 | 1.2 | 1 |" in text
    )
    assert "1 of 2 take no more than 0.5 s. Above 1 s: attention." in text.replace("\n", " ")
    assert "sm_90a | 3 | 2.50 MB | 0.60 MB |" in text and "sm_80 | 2 | 1.00 MB | 0.25 MB |" in text


def test_the_rule_against_the_table(kernels):
    text = kernels.choice_rule().replace("\n", " ")
    assert "| int8 | 10 | 4 | 2 | 1.040 | 1.016 |" in text and "float16" not in text
    assert "mark of 1.05 for all shapes is reached" in text and "1x2x3 int8 1.20" in text


def test_published_figures_have_ours_and_a_source(kernels, monkeypatch):
    lines = kernels.published().splitlines()
    (product,) = (line for line in lines if line.startswith("| float8"))
    assert product.endswith(" 4096x7168x16384 | 1354 | 1504 | 0.90 | DeepGEMM, run by others |")
    (attention,) = (line for line in lines if line.startswith("| attention"))
    assert attention.endswith("(theirs 4 x 48 heads) | 528 | 539 | 0.98 | FA3, tritonbench |")
    named = {line.split(" | ")[-1].removesuffix(" |") for line in (product, attention)}
    assert all(any(line.startswith(f"- {name}: ") for line in lines) for name in named)
    monkeypatch.setattr(kernels, "load", lambda _: None)
    assert kernels.published() is kernels.first_calls() is kernels.choice_rule() is None


def check_pages(*options):
    run = subprocess.run(
        [sys.executable, BENCH / "report.py", *options], capture_output=True, text=True
    )
    return run.returncode, run.stdout + run.stderr


def test_pages_say_what_the_results_say():
    assert check_pages("--check") == (0, "")


def test_help_of_the_report_writes_nothing():
    pages = [BENCH.parent / "docs" / name for name in ("figures.md", "operations_speed.md")]
    before = [(page.read_bytes(), page.stat().st_mtime_ns) for page in pages]
    code, told = check_pages("--help")
    assert code == 0 and "--check" in told
    assert [(page.read_bytes(), page.stat().st_mtime_ns) for page in pages] == before


STEP = {"step, ms": 12.5, "tokens a second": 40960.0, "mfu": 0.4326, "used_gb": 24.114}
TRAIN = {
    "machine": MACHINE,
    "gpt2": {
        "speed": {
            "batch": 8, "length": 64, "ours": STEP, "compiled": {"error": "out of memory"},
            "eager": {**STEP, "step, ms": 20.0, "mfu": "unknown", "time / ours": 1.6},
        },
        "losses": {
            "steps": 20, "reference": ["eager", "float32"],
            "reference apart": {"largest of a step": 0.0, "mean": 0.0},
            "ours apart": {"largest of a step": 0.0949, "mean": -0.00491},
            "eager apart": {"largest of a step": 0.1, "mean": 0.001},
        },
        "start": {"ours, cold, s": 9.76, "ours, warm, s": 1.12,
                  "eager, cold, s": {"error": "late"}, "eager, warm, s": 3.0},
    },
    "char": {"speed": {"batch": 2, "length": 4, "ours": STEP}, "losses": {"error": "no memory"}},
}  # fmt: skip
CONVOLUTION = {"name": "stem", "subject": "forward", "error": 2e-3,
               "ours": {"us": 20.0, "TFLOP/s": 100.0}}  # fmt: skip
NETWORK = {"name": "VAD, 9 steps", "subject": "backward", "cell": "lstm", "error": 1e-7}


@pytest.fixture
def steps(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCH))
    module = importlib.import_module("report_training")
    conv = [{**CONVOLUTION, "torch": {"us": 30.0}}, {**CONVOLUTION, "torch": {"error": "none"}}]
    times = {"ours": 10.0, "torch": 25.0, "torch tf32": {"error": "none"}}
    recurrent = [{**NETWORK, "device": times}, {**NETWORK, "device": {"ours": {"error": "none"}}}]
    documents = {"train": TRAIN, "conv": {"machine": MACHINE, "rows": conv},
                 "recurrent": {"machine": MACHINE, "rows": recurrent}}  # fmt: skip
    monkeypatch.setattr(module, "load", documents.get)
    yield module
    sys.modules.pop("report_training", None)


def test_training_steps(steps, monkeypatch):
    text = steps.training()
    assert "Training GPT-2 124M, 8 rows of 64 tokens, a GPU:" in text
    assert "| kernwright, one graph | 12.50 | 41 | 43.3 % | 24.1 | 1.00 |" in text
    assert "| torch, eager | 20.00 | 41 | unknown | 24.1 | 1.60 |" in text
    assert "torch.compile" not in text and text.count("of 4 tokens, a GPU:") == 1
    losses = steps.losses()
    assert "Losses of 20 steps of GPT-2 124M, less those of torch in float32" in losses
    assert "| kernwright, one graph | 0.0949 | -0.0049 |" in losses and losses.count("\n\n") == 1
    starts = steps.starts().splitlines()
    assert starts[-1] == "| kernwright, one graph | 9.8 | 1.1 |"
    (row,) = [line for line in steps.convolutions().splitlines() if line.startswith("| stem")]
    assert row == "| stem, forward | 20.0 | 100.0 | 30.0 | 1.50 | 2.0e-03 |"
    (row,) = [line for line in steps.recurrences().splitlines() if line.startswith("| LSTM")]
    assert row == "| LSTM, VAD, 9 steps, backward | 10.0 | 25.0 |  | 2.50 |  | 1.0e-07 |"
    monkeypatch.setattr(steps, "load", lambda _: None)
    assert steps.training() is steps.losses() is steps.starts() is None
    assert steps.convolutions() is steps.recurrences() is None


@pytest.fixture
def tuning(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCH))
    import report_tuning

    yield report_tuning
    for name in ("report_tuning", "report_text"):
        sys.modules.pop(name, None)


def test_missed_marks_of_searches_are_told(tuning):
    def results(*found):
        figures = dict(zip(tuning.SEARCH_FIGURES, found, strict=True))
        return {"strategies": {"kernwright portfolio": figures}}

    few = {**results(0.9, 0.92, 0.99, 0.5), "configurations": 70, "within": {"0.9": 3}}
    notes = " ".join(tuning.search_notes({"sum_A100_T4": few}).split())
    assert "On 'sum, A100' it misses those of the mean at 100 and the 10th percentile" in notes
    assert "Of its 70 configurations 3 reach 0.9 of the optimum." in notes
    assert "it reaches all." in tuning.search_notes({"sum": results(0.9, 0.93, 0.99, 0.9)})


@pytest.mark.parametrize(
    ("verdict", "rate", "missed"),
    [(0.5, 6, ""), (0.7, 6, "0.70 s for a verdict instead of 0.6 s."),
     (0.7, 2, "0.70 s for a verdict instead of 0.6 s, and 2 verdicts a second instead of 5.")],
)  # fmt: skip
def test_missed_marks_of_the_judge_are_told(tuning, verdict, rate, missed):
    one = {"time, s": 0.5, "verdict median, s": verdict}
    notes = " ".join(tuning.judge_notes(one, {"verdicts a second": rate}).split())
    before = f"Marks that are missed: {missed} " if missed else ""
    assert notes.startswith(f"{before}The timed series take 0.50 s of a verdict.")
