"""Recorded data is light: results of benchmarks have a record on a line and no samples, and each
archive holds what the manifest beside it lists."""

import importlib.util
import json
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]


def module_at(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


documents = module_at(ROOT / "bench" / "documents.py")
recorded = module_at(ROOT / "scripts" / "recorded.py")


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
    archives = [root / path for path in tracked if path.name.endswith(".tar.xz")]
    assert len(archives) >= 2
    for path in archives:
        found = [recorded.manifest_line(*entry) for entry in recorded.read(path).items()]
        listed = recorded.manifest_path(path).read_text().splitlines()
        assert listed == found, f"pack {path} (scripts/recorded.py)"


def test_equal_files_make_equal_archives(tmp_path):
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "b.txt").write_bytes(b"2\n3\n")
    (folder / "a.txt").write_bytes(b"1")
    first, second = tmp_path / "x.tar.xz", tmp_path / "y.tar.xz"
    recorded.pack(first, folder)
    recorded.unpack(first, tmp_path / "again")
    recorded.pack(second, tmp_path / "again")
    assert first.read_bytes() == second.read_bytes()
    assert recorded.read(first) == {"a.txt": b"1", "b.txt": b"2\n3\n"}
    lines = (tmp_path / "x.manifest").read_text().splitlines()
    assert [line.split()[1:] for line in lines] == [["0", "a.txt"], ["2", "b.txt"]]
    (folder / "a.txt").write_bytes(b"4")
    recorded.pack(second, folder)
    assert first.read_bytes() != second.read_bytes()
    assert (tmp_path / "y.manifest").read_text() != (tmp_path / "x.manifest").read_text()


def test_a_long_value_has_a_line_for_each_entry_and_figures_lose_samples():
    rows = [{"name": "x" * 500, "us": 1.0}, {"name": "y" * 500, "us": 2.0}]
    text = documents.text({"subject": "s", "rows": rows})
    assert json.loads(text) == {"subject": "s", "rows": rows} and text.count("\n") == 6
    assert documents.text({"a": [1, 2]}) == '{"a": [1, 2]}'
    sampled = {"median": 0.123456789123, "samples": [1.0, 2.0], "rows": [{"samples": 3}]}
    assert documents.figures(sampled) == {"median": 0.12345679, "rows": [{"samples": 3}]}
