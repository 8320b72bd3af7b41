"""Recorded data is light: results of benchmarks have a record on a line and no samples, and each
archive holds what the manifest beside it lists."""

import hashlib
import importlib.util
import json
import pathlib
import tarfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location("documents", ROOT / "bench" / "documents.py")
documents = importlib.util.module_from_spec(spec)
spec.loader.exec_module(documents)


def test_results_have_a_record_on_a_line(root, tracked):
    problems = []
    for path in tracked:
        if path.parts[:2] != ("bench", "results"):
            continue
        text = (root / path).read_text()
        if text != documents.text(documents.figures(json.loads(text))) + "\n":
            problems.append(f"{path}: run `python bench/documents.py {path}`")
    assert not problems, "\n".join(problems)


def test_archives_hold_what_their_manifests_list(root, tracked):
    archives = [path for path in tracked if path.name.endswith(".tar.xz")]
    for path in archives:
        with tarfile.open(root / path) as archive:
            found = [
                f"{hashlib.sha256(data).hexdigest()[:16]} {data.count(bytes([10])):6} {entry.name}"
                for entry in archive
                for data in (archive.extractfile(entry).read(),)
            ]
        manifest = (root / path).with_suffix("").with_suffix(".manifest")
        assert manifest.read_text().splitlines() == found, f"pack {path} (scripts/recorded.py)"


def test_a_long_value_has_a_line_for_each_entry_and_figures_lose_samples():
    rows = [{"name": "x" * 500, "us": 1.0}, {"name": "y" * 500, "us": 2.0}]
    text = documents.text({"subject": "s", "rows": rows})
    assert json.loads(text) == {"subject": "s", "rows": rows} and text.count("\n") == 6
    assert documents.text({"a": [1, 2]}) == '{"a": [1, 2]}'
    sampled = {"median": 0.123456789123, "samples": [1.0, 2.0], "rows": [{"samples": 3}]}
    assert documents.figures(sampled) == {"median": 0.12345679, "rows": [{"samples": 3}]}
