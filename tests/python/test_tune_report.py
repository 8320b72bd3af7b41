"""write_report(): the page is whole, loads nothing, escapes all, and its figures are right."""

import html.parser
import itertools
import json
import math
import random
import re

import pytest
import tune_rows

import kernwright as kw
from kernwright._support import svg as _svg
from kernwright._support.words import headline
from kernwright.tune._report import _analysis, _charts, write_report
from kernwright.tune._report._page import page
from kernwright.tune._report._read import read_record

VOID = {"meta", "input", "br", "img", "link", "hr"}
OPTIONAL = {"p", "th", "td", "tr"}  # HTML closes these itself
HOSTILE = "</script><img src=x onerror=alert(1)>\"'&"


class Reader(html.parser.HTMLParser):
    """Collects tags and texts, and finds tags that are not closed in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.attributes, self.texts = [], [], [], []
        self.feed(text)
        self.close()
        assert [tag for tag in self.open if tag not in OPTIONAL] == []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attributes]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        while self.open and self.open[-1] != tag and self.open[-1] in OPTIONAL:
            self.open.pop()
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, text):
        self.texts.append(text)


def trial(number, config, value=None, **more):
    row = {"v": 1, "kind": "trial", "session": "s", "number": number, "config": config,
           "status": "correct" if value is not None else "compile", "score": value,
           "median_ms": value, "ended_s": float(number + 1)}  # fmt: skip
    return {**row, **more}


def record_of(*trials, **session):
    return read_record([{"kind": "session", "session": "s", **session}, *trials])


@pytest.fixture(scope="module")
def rows():
    return tune_rows.session_rows(count=60, metrics=True)


def test_the_page_is_one_whole_file_that_loads_nothing(rows, tmp_path):
    path = tmp_path / "tune.html"
    write_report(rows, path, source="__global__ void convolve(float* x) { x[0] < 1; }")
    text = path.read_text()
    read = Reader(text)
    assert text.startswith("<!doctype html>") and 'lang="en"' in text
    assert not re.search(r"https?:|@import|url\(|<link|<iframe", text)
    assert not [a for a in read.attributes if a[1] in ("src", "srcset", "href", "action")
                and not a[2].startswith("#")]  # fmt: skip
    assert "prefers-color-scheme: dark" in text and "width=device-width" in text
    ids = [value for _, name, value in read.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    links = [value[1:] for tag, name, value in read.attributes if tag == "a" and name == "href"]
    assert len(links) > 7 and set(links) <= set(ids)
    assert list(tmp_path.iterdir()) == [path]


def test_every_picture_says_what_it_shows(rows):
    text = page(read_record(rows))
    pictures = re.findall(r"<svg [^>]*>", text)
    assert len(pictures) >= 8
    assert all('role="img"' in p and re.search(r'aria-label="[^"]{15,}"', p) for p in pictures)
    assert not re.search(r"\b(nan|inf|None)\b", " ".join(re.findall(r'[xy\dcr]+="[^"]*"', text)))


def test_what_the_page_says_of_the_winner(rows):
    result = rows[-1]
    text = "".join(Reader(page(read_record(rows), "KERNEL TEXT")).texts)
    assert f"{result['median_ms']:.4g} ms" in text
    assert f"{result['default_ms'] / result['median_ms']:.3g}x" in text
    for name, value in result["config"].items():
        assert f"#define {name} {int(value)}" in text
    assert "KERNEL TEXT" in text and "ended: budget" in text


def test_the_lines_of_use_are_python(rows):
    from kernwright.tune._report._winner import usage

    record = read_record(rows)
    code = usage(record, record.best)
    seen = {}

    class Fake:
        @staticmethod
        def kernel(source, defines):
            seen.update(defines)

    exec(code, {"kw": Fake, "source": "text"})
    assert seen == record.best.config


@pytest.mark.parametrize("where", ["kernel", "parameter", "value", "error", "status", "source"])
def test_hostile_names_stay_text(where):
    config = {HOSTILE if where == "parameter" else "block": 1}
    if where == "value":
        config["block"] = HOSTILE
    rows = [
        {"kind": "session", "session": "s", "device": {"name": HOSTILE},
         "kernel": HOSTILE if where == "kernel" else "k"},
        *(trial(i, {**config, "n": i % 4}, 1.0 + i, metrics={HOSTILE: 2.0}) for i in range(20)),
        trial(20, config, error=HOSTILE if where == "error" else "e",
              status=HOSTILE if where == "status" else "compile"),
    ]  # fmt: skip
    text = page(read_record(rows), HOSTILE if where == "source" else None)
    read = Reader(text)
    assert "img" not in read.tags and read.tags.count("script") == 1
    assert not [name for _, name, _ in read.attributes if name.startswith("on")]
    assert "<img" in "".join(read.texts)


@pytest.mark.parametrize(
    "more",
    [
        {"times_ms": "no list", "interval_ms": 3},
        {"times_ms": [None, "x", math.nan, 1e400], "interval_ms": [2, 1]},
        {"metrics": [1, 2], "resources": "many", "code": 7},
        {"compile_started_s": 5, "compile_ended_s": 1, "measure_s": -3, "verify_s": "x"},
        {"config": None, "status": None, "error": {"a": [1]}},
        {"number": "seven", "ended_s": None, "score": True},
        {"config": {"block": [1, 2], "deep": {"a": None}}},
        {"score": 10**400, "median_ms": -(10**400)},
    ],
    ids=range(8),
)
def test_odd_rows_are_shown_as_far_as_they_go(more, rows):
    own = [dict(row) for row in rows]
    own[3].update(more)
    own.append({"kind": "trial", "session": "s1", **more})
    Reader(page(read_record(own)))


@pytest.mark.parametrize(
    "trials",
    [
        [trial(0, {"a": 1}, 1.0)],
        [trial(0, {"a": 1}, 0.0), trial(1, {"a": 2}, 0.0)],
        [trial(0, {"a": 1})],
        [trial(0, {}, 1.0)],
        [trial(0, {"a": 1}, -3.0), trial(1, {"a": 2}, 5.0), trial(2, {"a": 3}, 0.0)],
        [trial(i, {"a": i}, 2.0) for i in range(30)],
        [trial(i, {"a": 1}, 1.0 + i) for i in range(30)],
        [trial(i, {"a": i, "b": -i}, 1.0 + i) for i in range(100)],
        [trial(0, {"a": 1}, 1e-300), trial(1, {"a": 2}, 1e300), trial(2, {"a": 2}, 1.0)],
    ],
    ids=["one", "zero", "failed", "bare", "signs", "equal", "fixed", "wide", "extreme"],
)
def test_sessions_of_odd_sizes(trials):
    text = page(record_of(*trials))
    Reader(text)
    assert not re.search(r'="-?(nan|inf)', text)


def test_no_trial_is_an_error_and_leaves_no_file(tmp_path):
    path = tmp_path / "x.html"
    path.write_text("before")
    store = tmp_path / "s.jsonl"
    store.write_text('{"kind": "session"}\nnoise\n')
    for nothing in ([], [{"kind": "session"}], [1, "x"], store):
        with pytest.raises(kw.InvalidArgument, match="no trial"):
            write_report(nothing, path)
    with pytest.raises(kw.ArgumentError):
        write_report(7, path)
    with pytest.raises(kw.ArgumentError):
        write_report([trial(0, {}, 1.0)], 7)
    with pytest.raises(kw.StoreError, match=r"none\.jsonl cannot be read"):
        write_report(tmp_path / "none.jsonl", path)
    with pytest.raises(kw.StoreError, match=r"x\.html cannot be written"):
        write_report([trial(0, {}, 1.0)], tmp_path / "no" / "x.html")
    assert path.read_text() == "before" and len(list(tmp_path.iterdir())) == 2


def test_a_store_is_read_past_torn_and_foreign_lines(rows, tmp_path):
    store = tmp_path / "s.jsonl"
    other = [{**row, "session": "first"} for row in tune_rows.session_rows(count=5, kernel="old")]
    lines = [json.dumps(row).encode() for row in [*other, *rows]]
    lines.insert(3, b"\xff\x00 binary")
    lines.insert(5, b"[1, 2]")
    store.write_bytes(b"\n".join(lines) + b'\n{"kind": "trial", "sess')
    assert read_record(store).kernel == "convolve"
    assert len(read_record(store).trials) == 60
    assert read_record(store, "first").kernel == "old"
    with pytest.raises(kw.InvalidArgument, match="no trial of session 'none'"):
        read_record(store, "none")
    assert repr(str(store)) in "".join(Reader(page(read_record(store))).texts)


def test_importance_is_the_share_of_variance():
    """For a sum of independent parts, the total effect is each part's share of the variance."""
    draw = random.Random(0)
    parts = {"big": 3.0, "small": 1.0, "none": 0.0}
    values = {name: [draw.randrange(8) for _ in range(800)] for name in parts}
    trials = []
    for i in range(800):
        config = {name: values[name][i] for name in parts}
        logarithm = sum(factor * config[name] / 8 for name, factor in parts.items())
        trials.append(trial(i, config, math.exp(logarithm)))
    found = _analysis.importance(record_of(*trials))
    total = sum(factor**2 for factor in parts.values())
    assert list(found.shares) == ["big", "small", "none"]
    for name, factor in parts.items():
        assert found.shares[name] == pytest.approx(factor**2 / total, abs=0.06)
    assert found.fit > 0.95


def test_importance_of_noise_says_that_it_explains_nothing():
    draw = random.Random(1)
    trials = [trial(i, {"a": draw.randrange(8)}, draw.random() + 0.1) for i in range(200)]
    assert _analysis.importance(record_of(*trials)).fit < 0.2
    assert _analysis.importance(record_of(*trials[:5])) is None


def test_the_front_is_what_nothing_beats():
    draw = random.Random(2)
    for size in (0, 1, 2, 60):
        points = [(draw.randrange(9), draw.randrange(9), draw.randrange(3)) for _ in range(size)]
        wanted = [
            i for i, p in enumerate(points)
            if not any(q != p and all(a <= b for a, b in zip(q, p, strict=True)) for q in points)
        ]  # fmt: skip
        assert sorted(_analysis.pareto_front(points)) == wanted


def test_lanes_never_overlap_and_are_as_few_as_they_can_be():
    draw = random.Random(3)
    spans = [(b, b + draw.random(), None) for b in (draw.random() * 5 for _ in range(80))]
    found = _analysis.lanes(spans)
    assert sorted(s[0] for lane in found for s in lane) == sorted(s[0] for s in spans)
    for lane in found:
        assert all(a[1] <= b[0] + 1e-9 for a, b in itertools.pairwise(lane))
    deepest = max(sum(b <= at < e for b, e, _ in spans) for at, _, _ in spans)
    assert len(found) == deepest
    covered = sum(any(b <= i / 1000 < e for b, e, _ in spans) for i in range(6000)) / 6000
    assert _analysis.use(spans, 6.0) == pytest.approx(covered, abs=0.01)


def test_best_so_far_pairs_and_failures(rows):
    record = read_record(rows)
    best, wanted = math.inf, []
    for row in sorted(rows[1:-1], key=lambda r: r["ended_s"]):
        if row["score"] is not None and row["score"] < best:
            best = row["score"]
            wanted.append(row["number"])
    assert [t.number for t in _analysis.best_so_far(record)] == wanted
    pair = _analysis.pair_map(record, "block", "tile")
    for (i, j), (value, count) in pair.cells.items():
        own = [r for r in rows[1:-1] if r["config"]["block"] == pair.row_values[i]
               and r["config"]["tile"] == pair.column_values[j]]  # fmt: skip
        scores = [r["score"] for r in own if r["score"] is not None]
        assert (value, count) == (min(scores, default=None), len(own))
    failed = sum(len(trials) for _, _, trials in _analysis.failures(record))
    assert failed == sum(row["status"] != "correct" for row in rows[1:-1]) > 0


def test_values_that_are_no_times_have_no_unit():
    simulated = record_of(trial(0, {}, 123456.0), device={"name": "sim", "is_simulated": True})
    assert _charts.value_text(simulated, 123456.0) == "123,456"
    assert "cost" in _charts.objective_text(simulated)
    timed = record_of(trial(0, {}, 1.0))
    shown = [_charts.value_text(timed, v) for v in (0.0021, 1.5, 2500.0)]
    assert shown == ["2.1 us", "1.5 ms", "2.5 s"]


def test_large_sessions_stay_small_files():
    draw = random.Random(4)
    trials = [
        trial(i, {f"p{k}": draw.randrange(40) for k in range(12)}, draw.random() + 0.5,
              times_ms=[1.0] * 40)
        for i in range(6000)
    ]  # fmt: skip
    trials += [trial(6000 + i, {"p0": i}, error=f"message {i}\n" + "x" * 9000) for i in range(500)]
    text = page(record_of(*trials))
    assert len(text) < 2_500_000
    assert "The best 1,000 of 6,500 trials" in text and "rarer messages" in text


@pytest.mark.parametrize("low,high", [(1, 10), (0.3, 0.31), (1e-9, 1e9), (-5, 5), (7, 7)])
@pytest.mark.parametrize("log", [False, True])
def test_scales_have_some_ticks_within_their_range(low, high, log):
    scale = _svg.Scale([low, high], 0, 100, log=log)
    ticks = scale.ticks()
    assert 1 <= len(ticks) <= 12
    assert all(-0.01 <= scale(tick) <= 100.01 for tick in ticks)


def test_text_on_a_shade_can_be_read():
    """WCAG asks for a contrast of 4.5 : 1."""

    def luminance(colour):
        full = colour[1:] if len(colour) == 7 else "".join(c * 2 for c in colour[1:])
        parts = [int(full[i : i + 2], 16) / 255 for i in (0, 2, 4)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return sum(f * c for f, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    def contrast(one, other):
        light, dark = sorted((luminance(one), luminance(other)), reverse=True)
        return (light + 0.05) / (dark + 0.05)

    for place in range(101):
        assert contrast(*_svg.shade(place / 100)) >= 4.5
    from kernwright._support import html as pages

    light, dark = pages._STYLE.split("@media")[:2]
    for theme in (light, dark):
        colours = dict(re.findall(r"--(\w+): (#\w+)", theme))
        for ink in ("ink", "soft", "accent", "good", "bad", "warm"):
            assert contrast(colours[ink], colours["paper"]) >= 4.5, ink
            assert contrast(colours[ink], colours["panel"]) >= 4.5, ink


def test_failures_are_grouped_by_what_was_wrong():
    errors = ["<string> did not compile:\nk.cu(3): error: no tile\n1 error", "plain", "", "a:\n\n"]
    assert [headline(error) for error in errors] == [
        "<string> did not compile: k.cu(3): error: no tile", "plain", "", "a:",
    ]  # fmt: skip


def test_a_counted_session_has_its_metrics_in_the_front():
    trials = [
        trial(i, {"a": i}, a + b, metrics={"instructions": a, "transactions": b})
        for i, (a, b) in enumerate([(5.0, 1.0), (1.0, 5.0), (5.0, 5.0), (2.0, 2.0)])
    ]
    record = record_of(*trials, policy="counts")
    assert _analysis.metrics_of(record) == ["instructions", "transactions"]
    _, front = _charts.front(record, _analysis.metrics_of(record))
    assert sorted(t.number for t in front) == [0, 1, 3]
    both = record_of(*trials, objective="instructions, transactions")
    assert _analysis.metrics_of(both) == ["instructions", "transactions"]


def test_sessions_that_went_on_with_each_other_are_one_report(tmp_path):
    rows = tune_rows.session_rows(count=30)
    about, trials, result = rows[0], rows[1:-1], rows[-1]
    first = [{**row, "session": "a"} for row in trials[:20]]
    began = min(row["started_s"] for row in trials[20:])
    second = [
        {**row, "session": "b", "number": row["number"] - 20, "ended_s": row["ended_s"] - began}
        for row in trials[20:]
    ]
    other = {**about, "session": "o", "problem": {"n": 1}}
    known = [
        {**about, "session": "a"}, *first, other, {**trials[0], "session": "o"},
        {**about, "session": "b", "seed": 5, "budget": {"evaluations": 99}}, *second,
        {**result, "session": "b"},
    ]  # fmt: skip
    record = read_record(known)
    assert (len(record.trials), record.sessions) == (30, 2)
    assert len({t.number for t in record.trials}) == 30
    ends = [t.ended_s for t in record.trials]
    assert ends == sorted(ends) and record.seconds == max(ends) > result["seconds"] - began
    assert {repr(t.config) for t in record.trials} == {repr(r["config"]) for r in trials}
    assert "2 sessions" in page(record)
    assert len(read_record(known, "b").trials) == 10
    assert len(read_record([*known, {**trials[0], "session": "o"}]).trials) == 2
    assert len(read_record(known[:-12]).trials) == 1
