"""The page of a tuning report: sections around the pictures, their style and their script."""

from __future__ import annotations

import html
import itertools

from kernwright._support import html as _html
from kernwright._support.words import counted
from kernwright.tune._report import _analysis, _charts, _lanes, _winner
from kernwright.tune._report._record import Record, TrialRow, text

_MOST_ROWS = 1000
_MOST_FAILURES = 60
_MOST_MESSAGE = 6000  # characters
_MAPPED = 4  # parameters of which each pair has a map

_STYLE = """
h1 { font-size: 1.5em; margin: 0 0 .1em; overflow-wrap: anywhere; }
h2 { font-size: 1.15em; margin: 2em 0 .5em; border-bottom: 1px solid var(--line); }
h3 { font-size: 1em; margin: 1.2em 0 .3em; } a { color: var(--accent); }
nav { margin: .6em 0 1.2em; } nav a { margin-right: 1em; white-space: nowrap; }
.soft, figcaption, small { color: var(--soft); } figcaption { font-size: .87em; }
.cards { display: grid; gap: .7em; grid-template-columns: repeat(auto-fit, minmax(9.5em, 1fr)); }
.card { background: var(--panel); border: 1px solid var(--line); border-radius: .6em;
padding: .7em .9em; display: flex; flex-direction: column; } .card b { font-size: 1.5em; }
.scroll th, .scroll td { overflow-wrap: normal; } td.wide { min-width: 18em; }
.charts, .pair { display: grid; gap: 1.2em 2em; align-items: start;
grid-template-columns: repeat(auto-fit, minmax(min(100%, 26em), 1fr)); }
figure { margin: 0; min-width: 0; } svg { width: 100%; height: auto; display: block; }
.charts figure { max-width: 36em; } .scroll { overflow-x: auto; } svg.wide { min-width: 44em; }
svg text { font: 12px system-ui, sans-serif; fill: var(--soft); } svg text.on { font-size: 11px; }
svg .value, svg .name { fill: var(--ink); } .grid { stroke: var(--line); stroke-width: .7; }
.axis { stroke: var(--soft); } polyline.best { fill: none; stroke: var(--accent);
stroke-width: 2; } .trial { fill: var(--soft); fill-opacity: .38; } .mark { fill: var(--accent); }
.bar, .compile { fill: var(--accent); } .device { fill: var(--good); }
.compile.failed, .device.failed { fill: var(--bad); } .empty { fill: var(--panel); }
rect.failed { fill: none; stroke: var(--bad); stroke-dasharray: 2 2; }
rect.compile.failed, rect.device.failed { stroke: none; fill: var(--bad); }
.rule { stroke-width: 1.6; stroke: var(--good); } .rule.default { stroke: var(--warm); }
.sample { fill: var(--soft); fill-opacity: .55; } .span { fill-opacity: .35; }
.winner { fill: var(--good); } .tie { fill: var(--accent); } .rest { fill: var(--soft); }
table { border-collapse: collapse; font-size: .93em; } caption { text-align: left;
color: var(--soft); } th, td { text-align: left; padding: .2em .9em .2em 0; vertical-align: top;
border-bottom: 1px solid var(--line); overflow-wrap: anywhere; } .pairs th { font-weight: 500;
color: var(--soft); white-space: nowrap; }
th button { all: unset; cursor: pointer; } th button:focus-visible {
outline: 2px solid var(--accent); } th button::after { content: " \\2195"; color: var(--soft); }
td.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.status { font-weight: 600; color: var(--bad); } .status.correct { color: var(--good); }
td pre, details pre { max-height: 30em; overflow: auto; } summary { cursor: pointer; }
pre { border-radius: .4em; font-size: .87em; } input { font: inherit; padding: .25em .5em;
background: var(--paper); color: var(--ink); border: 1px solid var(--soft); border-radius: .3em; }
@media (max-width: 50em) { .texts, .texts tbody { display: block; } .texts th { display: none; }
.texts tr { display: flex; flex-wrap: wrap; border-bottom: 1px solid var(--line); }
.texts td { border: 0; } .texts td.wide { flex: 1 0 100%; min-width: 0;
box-sizing: border-box; overflow-wrap: anywhere; }
.texts td[data-name]::before { content: attr(data-name) " "; color: var(--soft); } }
@media print { nav, input { display: none; } }
"""

# Sorts the table of trials by a column, and shows the rows that have a text in them.
_SCRIPT = """
const table = document.getElementById("trials"), body = table.tBodies[0];
table.querySelectorAll("th button").forEach((button, column) => {
  let down = false;
  button.onclick = () => {
    down = !down;
    const key = row => row.cells[column].dataset.v ?? row.cells[column].textContent;
    const order = (a, b) => {
      const x = key(a), y = key(b), n = x - y;
      return x === "" ? 1 : y === "" ? -1 : (down ? 1 : -1) * (n === n ? n : x < y ? -1 : x > y);
    };
    table.querySelectorAll("th").forEach(th => th.removeAttribute("aria-sort"));
    button.parentNode.setAttribute("aria-sort", down ? "ascending" : "descending");
    body.append(...[...body.rows].sort(order));
  };
});
document.getElementById("filter").oninput = event => {
  const words = event.target.value.toLowerCase().split(" ");
  for (const row of body.rows)
    row.hidden = !words.every(word => row.textContent.toLowerCase().includes(word));
};
"""


def _importance(record: Record) -> tuple[str, list[str]]:
    """The picture with a word on its source, and the parameters in their order."""
    found = _analysis.importance(record)
    if found is None:
        names = _analysis.varied(record)
        return "<p>Too few correct trials to say what matters.</p>", names
    weak = " That is little: read the order with care." if found.fit < 0.5 else ""
    said = (
        "<p class=soft>Total effect (Sobol's index, Jansen's estimator) on the logarithm of the "
        "value, as a random forest over "
        f"{counted(found.trials, 'correct trial')} predicts it. The forest explains "
        f"{100 * found.fit:.0f} % of the variance of trials that it has not seen.{weak}</p>"
    )
    return f"{_charts.importance(found)}{said}", list(found.shares)


def _pairs(record: Record, names: list[str]) -> str:
    maps = [
        _charts.pair_map(record, _analysis.pair_map(record, rows, columns))
        for rows, columns in itertools.combinations(names[:_MAPPED], 2)
    ]
    return f"<div class=charts>{''.join(maps)}</div>" if any(maps) else ""


def _failures(record: Record) -> str:
    groups = _analysis.failures(record)
    if not groups:
        return "<p>None: every trial was correct.</p>"
    rows = []
    for status, first, trials in groups[:_MOST_FAILURES]:
        whole = trials[0].error.strip()
        shown = html.escape(first) or "<span class=soft>no message</span>"
        if whole != first:
            cut = html.escape(whole[:_MOST_MESSAGE]) + (
                " ..." if len(whole) > _MOST_MESSAGE else ""
            )
            shown = f"<details><summary>{shown}</summary><pre>{cut}</pre></details>"
        numbers = ", ".join(str(trial.number) for trial in trials[:8])
        numbers += ", ..." if len(trials) > 8 else ""
        config = html.escape(_charts.config_text(trials[0].config))
        rows.append(
            f"<tr><td class=status>{html.escape(status)}</td>"
            f"<td class=n data-name=trials>{len(trials)}</td>"
            f"<td class=wide>{shown}</td><td class=wide>{config}</td>"
            f"<td data-name=numbers>{numbers}</td></tr>"
        )
    more = len(groups) - _MOST_FAILURES
    note = f"<p>and {counted(more, 'rarer message')}</p>" if more > 0 else ""
    return (
        "<div class=scroll><table class=texts><tr><th>status<th>trials<th>message"
        f"<th>first configuration<th>numbers</tr>{''.join(rows)}</table></div>{note}"
    )


def _cell(value: float | None, shown: str) -> str:
    return f'<td class=n data-v="{"" if value is None else value}">{html.escape(shown)}</td>'


def _trial(record: Record, trial: TrialRow, names: list[str]) -> str:
    kind = "status correct" if trial.correct else "status"
    shown = _charts.value_text(record, trial.value) if trial.value is not None else ""
    cells = [
        _cell(trial.number, str(trial.number)),
        f'<td class="{kind}">{html.escape(trial.status)}</td>',
        _cell(trial.value, shown),
        _cell(trial.compile_s, f"{trial.compile_s:.3g} s"),
        *(f"<td>{html.escape(text(trial.config.get(name)))}</td>" for name in names),
    ]
    return f"<tr>{''.join(cells)}</tr>"


def _trials(record: Record) -> str:
    names = record.parameters
    bad = [trial for trial in record.trials if trial.value is None]
    shown = [*record.correct, *bad][:_MOST_ROWS]
    heads = ["trial", "status", _charts.objective_text(record), "compile", *names]
    head = "".join(f"<th scope=col><button>{html.escape(name)}</button></th>" for name in heads)
    note = ""
    if len(shown) < len(record.trials):
        note = f"<p>The best {len(shown):,} of {len(record.trials):,} trials.</p>"
    return (
        "<p><label>Show rows with <input id=filter type=search></label></p>"
        f"{note}<div class=scroll><table id=trials><thead><tr>{head}</tr></thead>"
        f"<tbody>{''.join(_trial(record, trial, names) for trial in shown)}</tbody></table></div>"
    )


def _front(record: Record) -> str:
    names = _analysis.metrics_of(record)
    if len(names) < 2:
        return ""
    picture, trials = _charts.front(record, names)
    if not picture:
        return ""
    rows = "".join(
        f"<tr><td class=n data-name=trial>{trial.number}</td>"
        + "".join(
            f"<td class=n data-name='{html.escape(name)}'>"
            f"{text(_analysis.metric(record, trial, name))}</td>"
            for name in names
        )
        + f"<td class=wide>{html.escape(_charts.config_text(trial.config))}</td></tr>"
        for trial in trials[:_MOST_FAILURES]
    )
    head = "".join(f"<th>{html.escape(name)}" for name in ("trial", *names, "configuration"))
    return (
        f"<div class=charts>{picture}<div class=scroll><table class=texts><tr>{head}</tr>{rows}"
        "</table></div></div>"
    )


def page(record: Record, source: str | None = None) -> str:
    """`source`: the text of the kernel, shown below the winner's defines."""
    both = _charts.progress(record, False) + _charts.progress(record, True)
    matters, names = _importance(record)
    spread = _charts.distribution(record) + _charts.noise(record)
    sections = [
        ("winner", "Winner", _winner.winner(record, source)),
        ("convergence", "Convergence", f"<div class=charts>{both}</div>" if both else ""),
        ("importance", "What matters", f"<div class=charts>{matters}</div>"),
        ("pairs", "Pairs of parameters", _pairs(record, names)),
        ("spread", "Distribution and noise", f"<div class=charts>{spread}</div>" if spread else ""),
        ("front", "Pareto front", _front(record)),
        ("failures", "Failures", _failures(record)),
        ("lanes", "Who worked when", _lanes.lanes(record)),
        ("conditions", "How it was measured", _winner.conditions(record)),
        ("all", "Trials", _trials(record)),
    ]
    sections = [section for section in sections if section[2]]
    links = "\n".join(f'<a href="#{key}">{title}</a>' for key, title, _ in sections)
    body = "".join(
        f"<section aria-labelledby={key}><h2 id={key}>{title}</h2>\n{inner}</section>\n"
        for key, title, inner in sections
    )
    where = f" on {record.device}" if record.device else ""
    head = f"{_winner.cards(record)}<nav aria-label=Sections>{links}</nav>"
    return _html.page(
        f"Tuning {record.kernel}{where}", f"{head}{body}<script>{_SCRIPT}</script>", _STYLE
    )
