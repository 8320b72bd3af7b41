"""What a notebook shows of reports, findings, profiles, traces, snapshots and timings."""

import html.parser

import pytest

import kernwright as kw

RACE = """
__global__ void race(float* x) {
    __shared__ float s[64];
    s[threadIdx.x] = x[threadIdx.x];
    x[threadIdx.x] = s[63 - threadIdx.x];
}"""
VOID = {"br", "meta", "img", "line", "rect", "path", "polyline", "circle"}


class Balanced(html.parser.HTMLParser):
    """Counts elements that are opened and closed; those that HTML lets open are left out."""

    LEFT_OPEN = VOID | {"td", "th", "tr"}

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        if tag not in self.LEFT_OPEN:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.LEFT_OPEN:
            assert self.open.pop() == tag


def shown(value):
    text = value._repr_html_()
    reader = Balanced()
    reader.feed(text)
    reader.close()
    assert reader.open == []
    assert text.startswith("<div") and "<script" not in text and "http" not in text
    assert "<h1" not in text and "<html" not in text  # a part of a page, not one
    return text


@pytest.fixture
def race(sim):
    kernel = kw.kernel(RACE)
    return kernel, kw.arange(64, dtype="float32")


def test_reports_and_findings(race):
    kernel, x = race
    with kw.checks("race") as report:
        kernel[1, 64](x)
    text = shown(report)
    assert "1 finding" in text or "2 findings" in text
    assert "s[threadIdx.x] = x[threadIdx.x];" in text and "class='row at'" in text
    assert "race" in shown(report[0])
    with kw.checks("race") as nothing:
        pass
    assert "0 findings" in shown(nothing)


def test_line_profiles_and_traces(race):
    kernel, x = race
    with kw.line_profile() as profile:
        kernel[1, 64](x)
    assert "s[threadIdx.x] = x[threadIdx.x];" in shown(profile)
    with kw.trace(kernel, thread=3) as trace:
        kernel[1, 64](x)
    text = shown(trace)
    assert "Trace of race" in text and "ld.global" in text


def test_profiles_timings_and_memory(race):
    kernel, x = race
    with kw.profile() as profile:
        assert "not done" in shown(profile)
        kernel[1, 64](x)
        x.numpy()
    text = shown(profile)
    assert "total ms" in text and ">race<" in text
    timing = kw.time_kernel(lambda: kernel[1, 64](x), max_samples=10)
    assert "median" in shown(timing)
    assert "Memory of sim" in shown(kw.memory.snapshot())


def test_reports_of_kernels(race):
    assert "registers" in shown(race[0].report(phases=False)).lower()


def test_text_is_escaped(sim):
    kernel = kw.kernel("template <int N> __global__ void k(float* x) { x[0] = N; }", name="k<3>")
    with kw.profile() as profile:
        kernel[1, 1](kw.ones(1))
    assert "k&lt;3" in shown(profile)
    assert "k&lt;3&gt;" in shown(kernel.report(phases=False))
