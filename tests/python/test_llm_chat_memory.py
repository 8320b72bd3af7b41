"""Chat templates that would take much memory are stopped before they do."""

import json
import tracemalloc

import pytest

from kernwright import llm
from kernwright.llm._chat import memory

USER = {"role": "user", "content": "a b c"}


def doubling(name, expression):
    """A template whose value doubles 60 times."""
    return (
        "{% set ns = namespace(a='ab\n cd', l=['ab']) %}{% for i in range(60) %}"
        f"{{% set ns.{name} = {expression} %}}{{% endfor %}}"
    )


BOMBS = [
    "{{ '%99999999s' % 'x' }}", "{{ '%.99999999f' % 1 }}", "{{ '%*s' % (99999999, 'x') }}",
    "{{ '%(a)99999999s' % {'a': 1} }}", "{{ '%99999999s'|format('x') }}",
    "{{ '{:>99999999}'.format('x') }}", "{{ '{:{}}'.format('x', 99999999) }}",
    "{{ '{:{w}}'.format_map({'w': 99999999}) }}", "{{ ('%0' ~ '99999999d') % 1 }}",
    "{{ '%99999s' * 9000 % range(9000)|list|map('string')|list }}",
    "{{ '{0:>99999}'.format(1) * 9000 }}", "{{ ('{0:>9999}' * 9000).format(1) }}",
    "{{ 'x'.ljust(99999999) }}", "{{ 'x'.center(width=99999999) }}", "{{ 'x'|center(99999999) }}",
    "{{ 'x'.zfill(99999999) }}", "{{ '\t'.expandtabs(99999999) }}",
    "{{ '\t'.expandtabs(tabsize=99999999) }}", "{{ ('\t' * 9999).expandtabs(9999) }}",
    doubling("a", "ns.a + ns.a"), doubling("a", "ns.a ~ ns.a"), doubling("a", "ns.a * 2"),
    doubling("l", "ns.l + ns.l"), doubling("l", "[ns.l, ns.l]") + "{{ ns.l }}",
    doubling("l", "[ns.l, ns.l]") + "{{ ns.l|tojson }}",
    doubling("l", "[ns.l, ns.l]") + "{{ ns.l|string }}",
    doubling("l", "[ns.l, ns.l]") + "{{ ns.l ~ '' }}",
    doubling("l", "{'a': ns.l, 'b': ns.l}") + "{{ '%s' % ns.l }}",
    doubling("l", "[ns.l, ns.l]") + "{{ '{}'.format(ns.l) }}",
    doubling("l", "[ns.l, ns.l]") + "{{ ns.l|pprint }}", doubling("l", "[ns.l] * 2"),
    doubling("l", "{'a': ns.l, 1: ns.l}") + "{{ ns.l.items() }}", doubling("l", "(ns.l, ns.l)"),
    doubling("l", "dict.fromkeys(['a', 'b'], ns.l)"), doubling("l", "'ab'|batch(5, ns.l)|list"),
    doubling("l", "[{}, {}]|map(attribute='x', default=ns.l)|list"),
    "{% macro m(n) %}{% set n.l = varargs %}{% endmacro %}{% set ns = namespace(l=['ab']) %}"
    "{% for i in range(60) %}{{ m(ns, ns.l, ns.l) }}{% endfor %}",
    doubling("l", "dict(a=ns.l, b=ns.l)"), doubling("l", "[ns.l, ns.l]|list + [ns.l]"),
    doubling("l", "[ns.l, ns.l]") + doubling("m", "[ns.m, ns.m]") + "{{ ns.l == ns.m }}",
    doubling("a", "ns.a.replace('a', 'aa')"), doubling("a", "ns.a|replace('a', 'aa')"),
    doubling("a", "ns.a.replace('', ns.a)"), doubling("a", "ns.a.join([ns.a, ns.a])"),
    doubling("a", "[ns.a, ns.a]|join(ns.a)"), doubling("a", "[ns.a, ns.a]|join"),
    doubling("a", "'%s%s' % (ns.a, ns.a)"), doubling("a", "'{0}{0}'.format(ns.a)"),
    "{{ ('a' * 9999).translate({97: 'b' * 9999}) }}", doubling("a", "ns.a|indent(ns.a)"),
    doubling("a", "(ns.a ~ '\n' ~ ns.a)|indent(99999)"),
    doubling("a", "ns.a.encode().replace('b'.encode(), 'bb'.encode()).decode()"),
    "{% set ns = namespace(a='ab') %}{% for i in range(60) %}{% set x %}{{ ns.a }}{{ ns.a }}"
    "{% endset %}{% set ns.a = x %}{% endfor %}",
    "{% macro m(x) %}{{ x }}{{ x }}{% endmacro %}{% set ns = namespace(a='ab') %}"
    "{% for i in range(60) %}{% set ns.a = m(ns.a) %}{% endfor %}",
    "{% set x = 'a' * 99999 %}{% for i in range(9999) %}{{ x }}{% endfor %}",
    "{% set x = 'a' * 99999 %}{% set ns = namespace(l=[]) %}{% for i in range(9999) %}"
    "{% set ns.l = ns.l + [x[1:]] %}{% endfor %}",
    "{% set ns = namespace(l=[]) %}{% for i in range(9999) %}"
    "{% set ns.l = ns.l + [('a b ' * 9999).split()] %}{% endfor %}",
    "{{ [1, 2]|tojson(indent=99999999) }}", "{{ [1, 2]|tojson(separators=(' ' * 9999, ':')) }}",
    "{{ ([('a' * 9999)] * 9999)|join }}", "{{ ([('a' * 9999)] * 9999)|map('upper')|join }}",
    "{{ ([['a'] * 9999] * 9999)|sum(start=[]) }}", "{% filter center(99999999) %}x{% endfilter %}",
    "{% generation %}" + "{{ 'a' * 99999 }}" * 99 + "{% endgeneration %}",
    doubling("n", "(ns.n or 3) * (ns.n or 3)"), "{{ 'x'|list|batch(99999999, 'x')|list }}",
]  # fmt: skip


@pytest.mark.parametrize("text", BOMBS, ids=range(len(BOMBS)))
def test_templates_that_would_take_much_memory(text, monkeypatch):
    monkeypatch.setattr(memory, "_MOST_BYTES", 1 << 20)
    monkeypatch.setattr(memory, "_MOST_REPEATED", 200_000)
    tracemalloc.start()
    try:
        for run in (
            lambda template: template.render([USER]),
            lambda template: template.generation_ranges([USER]),
        ):
            with pytest.raises(llm.ModelError, match=r"is stopped|formats with|computes"):
                run(llm.ChatTemplate(text))
        assert tracemalloc.get_traced_memory()[1] < 40 << 20
    finally:
        tracemalloc.stop()


def test_each_text_begins_anew_and_large_conversations_fit(monkeypatch):
    template = llm.ChatTemplate(
        "{% for m in messages[0:] %}{{ m.role ~ ': ' + m.content | trim }}\n{% endfor %}"
    )
    messages = [{"role": "user", "content": "word " * 2000}] * 400  # 4 MB
    first = template.render(messages)
    assert first == "\n".join(["user: " + ("word " * 2000).strip()] * 400) + "\n"
    monkeypatch.setattr(memory, "_MOST_BYTES", 64 << 20)
    for _ in range(5):
        assert template.render(messages) == first


def test_operations_that_are_counted_do_as_before():
    """Against Python's own."""
    text = "a\tb \u00e9\nc"
    cases = {
        "'%5s|%-4d|%%' % ('x', 3)": "    x|3   |%", "'%(k)s' % {'k': 1}": "1",
        "x ~ 1 ~ none ~ [1]": text + "1None[1]", "x + 'y'": text + "y", "(2 + 3) * 4 % 7": "6",
        "[1] + [2]": "[1, 2]", "(x|length, [x|length])": "(7, [7])",
        "{'a': x|length, 'b': 2}.items()": "dict_items([('a', 7), ('b', 2)])",
        "namespace(a=x)": "<Namespace>", "dict(a=1)": "{'a': 1}",
        "dict.fromkeys('ab', 1)": "{'a': 1, 'b': 1}", "'abc'|batch(2, 'z')|list|length": "2",
        "[x == x, [x] == [x], (x, 1) in [(x, 1)]]": "[True, True, True]",
        "x[1:]": text[1:], "x[::-1]": text[::-1], "[1, 2, 3][-2:]": "[2, 3]",
        "x.replace('b', 'xx', 1)": text.replace("b", "xx", 1),
        "x.split()|join('-')": "a-b-\u00e9-c", "x.expandtabs(2)": text.expandtabs(2),
        "x.split('b')": str(text.split("b")), "x.rsplit(none, 1)": str(text.rsplit(None, 1)),
        "x.splitlines()[1]": "c", "', '.join(['a', 'b'])": "a, b",
        "'{0:>4}{a}{0}'.format(1, a=2)": "   121", "'{x[k]}'.format_map({'x': {'k': 5}})": "5",
        "'ab'.translate({97: 'zz'})": "zzb", "x|indent(2)": text.replace("\n", "\n  "),
        "[3, 1]|sort|list": "[1, 3]", "[1, 2]|sum": "3", "'ab'|list": "['a', 'b']",
        "[{'a': 1}, {'a': 2}]|map(attribute='a')|join('+')": "1+2", "'a'|upper|center(5)": "  A  ",
        "x|tojson": json.dumps(text, ensure_ascii=False),
        "{'a': [1]}|tojson(indent=1)": '{\n "a": [\n  1\n ]\n}',
    }  # fmt: skip
    for expression, expected in cases.items():
        template = llm.ChatTemplate("{% set x = messages[0].content %}{{ " + expression + " }}")
        assert template.render([{"role": "user", "content": text}]) == expected, expression
