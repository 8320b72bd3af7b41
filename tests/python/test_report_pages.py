"""Pages of reports in a browser: on wide and narrow screens, light and dark, all can be read."""

import itertools
import re

import browser
import pytest
import tune_rows

import kernwright as kw
from kernwright._support import svg
from kernwright.tune._report import write_report

pytestmark = [
    pytest.mark.usefixtures("sim"),
    pytest.mark.skipif(browser.find() is None, reason=browser.WHY_NONE),
]

# A line that is wider than a narrow screen, a kernel with every kind of cost.
SOURCE = """
template <typename T>
__global__ void every_cost_of_a_line(const T* __restrict__ in, T* out, int* counts, int n) {
    __shared__ T tile[32][32];
    int i = threadIdx.x + threadIdx.y * 32, column = threadIdx.x, row = threadIdx.y;
    tile[row][column] = in[(i * 32) % n];  // scattered
    __syncthreads();
    if (column % 2) out[i] = tile[column][row] * static_cast<T>(0.25) + static_cast<T>(row + 17);
    atomicAdd(counts + row % 2, 1);  // contended
}"""
RACE = """__global__ void race(float* x) {
    __shared__ float shared_values_of_the_block[64];
    shared_values_of_the_block[threadIdx.x] = x[threadIdx.x] * 2.0f + 1.0f - x[63 - threadIdx.x];
    x[threadIdx.x] = shared_values_of_the_block[63 - threadIdx.x];
}"""


def line_profile():
    kernel = kw.kernel(SOURCE, name="every_cost_of_a_line<float>")
    with kw.line_profile(kernel) as profile:
        kernel[2, (32, 8)](kw.zeros(8192), kw.zeros(8192), kw.zeros(2, "int32"), 8192)
    return profile


def findings():
    kernel = kw.kernel(RACE)
    with kw.checks("race") as report:
        kernel[1, 64](kw.zeros(64))
    return report


def memory():
    with kw.memory.use(kw.memory.PoolResource()):
        kept = [kw.zeros(1000 * n) for n in range(1, 40)]
        del kept[::2]
        return kw.memory.snapshot()


def tuning_report(path):
    source = "__global__ void convolve(float* x) { " + "x[threadIdx.x] += 1.0f; " * 12 + "}"
    write_report(tune_rows.session_rows(count=40, metrics=True), path, source=source)


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Paths by name, with a text of the source (or what else matters) that must be visible."""
    folder = tmp_path_factory.mktemp("pages")
    with kw.Device("sim"):
        line_profile().save(folder / "lines.html")
        findings().save(folder / "findings.html")
        memory().save(folder / "memory.html")
    tuning_report(folder / "tuning.html")
    return {
        "lines": (folder / "lines.html", "if (column % 2) out[i] = tile[column][row]"),
        "findings": (folder / "findings.html", "x[threadIdx.x] = shared_values_of_the_block"),
        "memory": (folder / "memory.html", "Over time"),
        "tuning": (folder / "tuning.html", "__global__ void convolve"),
    }


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    made = browser.Browser(browser.find(), tmp_path_factory.mktemp("browser") / "profile")
    yield made
    made.close()


def use_scheme(page, scheme):
    page.call(
        "Emulation.setEmulatedMedia",
        features=[{"name": "prefers-color-scheme", "value": scheme}],
    )


# Whether a text is shown, and begins within the width of the screen.
SHOWN = """(() => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  for (let node; node = walker.nextNode();) {
    if (!node.data.includes(WANTED)) continue
    for (let each = node.parentElement; each; each = each.parentElement)
      if (each.tagName === "DETAILS") each.open = true
    const range = document.createRange()
    const start = node.data.indexOf(WANTED)
    range.setStart(node, start)
    range.setEnd(node, start + 1)
    const box = range.getBoundingClientRect()
    if (box.width > 0 && box.left >= 0 && box.right <= innerWidth) return true
  }
  return false
})()"""


@pytest.mark.parametrize(
    ("name", "width", "scheme"),
    [*itertools.product(("lines", "findings", "memory", "tuning"), (1200, 480), ("light", "dark"))],
)
def test_a_page_fits_the_screen_and_shows_its_source(page, pages, name, width, scheme):
    path, text = pages[name]
    use_scheme(page, scheme)
    page.resize(width)
    page.go(path.as_uri())
    assert page.problems == []
    assert page.too_wide() is None
    assert page.ask(SHOWN.replace("WANTED", repr(text)))
    assert {url.split(":")[0] for url in page.requests} <= {"file", "data"}


# Boxes of text that scroll sideways; a table of numbers may.
SCROLLED = """[...document.querySelectorAll("pre, pre *, .scroll:has(.texts), p, td.wide")].filter(
  (each) => each.clientWidth && each.scrollWidth > each.clientWidth + 1).map(
  (each) => each.scrollWidth + " > " + each.clientWidth + ": " + each.outerHTML.slice(0, 80))"""
OPEN_ALL = "document.querySelectorAll('details').forEach((each) => { each.open = true })"


@pytest.mark.parametrize(
    ("name", "width"), [*itertools.product(("lines", "findings", "memory", "tuning"), (1200, 480))]
)
def test_text_does_not_scroll_sideways(page, pages, name, width):
    page.resize(width)
    page.go(pages[name][0].as_uri())
    page.ask(OPEN_ALL)
    assert page.ask(SCROLLED) == []


# Of each line of a source: its text, how far its first character stands below and to the right of
# its number, how far its other rows stand to the right of its first one, and the count of rows.
ROWS = """[...document.querySelectorAll("pre .row")].map((row) => {
  const code = row.querySelector(".code"), number = row.querySelector(".number")
  if (!code.firstChild) return null
  const range = document.createRange(), boxes = []
  for (let i = 0; i < code.firstChild.length; ++i) {
    range.setStart(code.firstChild, i)
    range.setEnd(code.firstChild, i + 1)
    boxes.push(range.getBoundingClientRect())
  }
  const tops = [...new Set(boxes.map((box) => box.top))]
  const left = Math.min(...boxes.filter((box) => box.top > tops[0]).map((box) => box.left))
  const from = (number ?? row).getBoundingClientRect()
  return [code.textContent, boxes[0].top - from.top, boxes[0].left - from.left,
    tops.length > 1 ? left - boxes[0].left : 0, tops.length]
}).filter(Boolean)"""


@pytest.mark.parametrize("name", ["findings", "tuning"])
def test_a_long_line_goes_on_below_its_first_character(page, pages, name):
    page.resize(480)
    page.go(pages[name][0].as_uri())
    page.ask(OPEN_ALL)
    rows = page.ask(ROWS)
    assert max(count for *_, count in rows) > 1
    for text, below, right, hanging, _ in rows:
        assert abs(below) < 3, text
        assert right > 30 if name == "findings" else right >= 0, text
        assert abs(hanging) < 1, text


# Contrast of each text of the page to what is behind it, as WCAG 2 defines it; the least of all.
CONTRAST = """(() => {
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true})
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1)
    canvas.fillStyle = colour
    canvas.fillRect(0, 0, 1, 1)
    return [...canvas.getImageData(0, 0, 1, 1).data].map((c, i) => i == 3 ? c / 255 : c)
  }
  const over = (top, ground) => ground.map((c, i) => top[i] * top[3] + c * (1 - top[3]))
  const light = (colour) => {
    const [r, g, b] = colour.map((c) => c / 255).map(
      (c) => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b
  }
  let worst = [99, ""]
  for (const each of document.querySelectorAll(".lines td, p, li, h1, h2")) {
    if (!each.textContent.trim()) continue
    const above = []
    for (let up = each; up; up = up.parentElement) above.unshift(getComputedStyle(up))
    let ground = [255, 255, 255]
    for (const style of above) ground = over(rgba(style.backgroundColor), ground)
    const ink = light(over(rgba(above.at(-1).color), ground)), paper = light(ground)
    const contrast = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05)
    if (contrast < worst[0]) worst = [contrast, each.outerHTML.slice(0, 90)]
  }
  return worst
})()"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_shaded_lines_keep_their_contrast(page, pages, scheme):
    use_scheme(page, scheme)
    page.resize(1200)
    page.go(pages["lines"][0].as_uri())
    contrast, where = page.ask(CONTRAST)
    assert contrast >= 4.5, where


def shades(page):
    """Of each line of the source: its text and the opacity of its ground."""
    rows = page.ask(
        "[...document.querySelectorAll('.lines tr:not(.head):not(.advice)')].map((row) => "
        "[row.querySelector('.source').textContent, getComputedStyle(row).backgroundColor])"
    )
    return {text.strip(): float(re.findall(r"[0-9.]+", colour)[-1]) for text, colour in rows}


def test_the_shade_is_the_cost(page, pages):
    page.resize(1200)
    page.go(pages["lines"][0].as_uri())
    profile = line_profile()
    cost = {line.source.strip(): line.counts.cost for line in profile.lines if line.source}
    seen = shades(page)
    assert len(cost) >= 6
    for one, other in itertools.pairwise(sorted(cost, key=cost.get)):
        assert seen[one] <= seen[other] + 1e-6
    most = max(cost, key=cost.get)
    assert seen[most] == max(seen.values()) > 0.3
    (plain,) = [shade for text, shade in seen.items() if text.startswith("int i")]
    assert seen[most] > 2 * plain


def test_on_a_narrow_screen_counts_stand_below_their_line_with_names(page, pages):
    page.resize(480)
    page.go(pages["lines"][0].as_uri())
    boxes = page.ask(
        "[...document.querySelectorAll('.lines td[data-name]:not(.none)')].map((cell) => {"
        "const own = cell.getBoundingClientRect(), source = cell.parentElement.querySelector("
        "'.source').getBoundingClientRect(); return [own.left, own.right, own.top - source.bottom,"
        "getComputedStyle(cell, '::before').content]})"
    )
    assert len(boxes) > 20
    assert all(left >= 0 and right <= 480 and below >= -1 for left, right, below, _ in boxes)
    assert {name for *_, name in boxes} >= {'"cost "', '"sect/req "', '"conflicts "'}


@pytest.mark.parametrize("low", [1e-4, 0.9, 900_000.0, 1e9])
@pytest.mark.parametrize("spread", [1.0, 1.0001, 1.3, 1000.0])
def test_labels_of_axes_fit(low, spread):
    """Neither cut off at an edge, nor on the axis' name, nor on each other."""
    values = [low, low * spread]

    def text(value):
        return f"{value:,.0f}" if value > 1000 else f"{value:.6g}"

    plot = svg.Plot(values, values, log_x=True, log_y=True, x_text=text, y_text=text)
    plot.axes("x", "y")
    page = plot.svg("a plot")
    found = re.findall(r'<text x="([\d.]+)" y="([\d.]+)" text-anchor="(\w+)">([^<]*)</text>', page)
    assert found
    ends = []
    for x, _y, anchor, label in found:
        width = 6.5 * len(label)
        begin = float(x) - {"end": width, "middle": width / 2}[anchor]
        assert begin >= (18 if anchor == "end" else 0) and begin + width <= plot.width, label
        if anchor == "middle":
            ends.append((begin, begin + width))
    assert all(left[1] <= right[0] for left, right in itertools.pairwise(ends))
