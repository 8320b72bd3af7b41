"""llm.ChatTemplate: templates in the styles of models, built-in ones, the sandbox."""

import dataclasses
import datetime
import json

import chat_templates as chats
import numpy as np
import pytest
from chat_templates import ANSWER, CALL, CALLS, PARTED, REASON, RESULT, SYSTEM, TOOLS, USER

import kernwright as kw
from kernwright import llm

pytest.importorskip("jinja2", reason="pip install 'kernwright[llm]'")

VARIABLES = {"bos_token": "<s>", "eos_token": "</s>"}
TOOL = json.dumps(TOOLS[0], ensure_ascii=False)


def rendered(style, messages, tools=None, **options):
    return llm.ChatTemplate(chats.STYLES[style], **VARIABLES).render(messages, tools, **options)


def test_hermes_style():
    user = "<|im_start|>user\nHello <b> & 'you'\n caf\u00e9  <|im_end|>\n"
    assert (
        rendered("hermes", [USER], add_generation_prompt=True) == user + "<|im_start|>assistant\n"
    )
    thinking = rendered("hermes", [USER], add_generation_prompt=True, enable_thinking=False)
    assert thinking == user + "<|im_start|>assistant\n<think>\n\n</think>\n\n"
    system = "<|im_start|>system\nBe brief.\n"
    assert rendered("hermes", [SYSTEM, USER]) == system + "<|im_end|>\n" + user
    tools = f"\n\n# Tools\n<tools>\n{TOOL}\n</tools><|im_end|>\n"
    assert rendered("hermes", [SYSTEM, USER], TOOLS) == system + tools + user
    # The reasoning of the last answer is shown, under each of its names; that of earlier ones not.
    answer = "<|im_start|>assistant\n<think>\nSix by seven.\n</think>\n\n42<|im_end|>\n"
    assert rendered("hermes", [USER, REASON]) == user + answer
    for name in ("thinking", "reasoning_content"):
        other = {"role": "assistant", "content": "42", name: "\nSix by seven.\n"}
        assert rendered("hermes", [USER, other]) == user + answer
    several = {**other, "thinking": "Of another client.", "reasoning": "Of a third."}
    assert rendered("hermes", [USER, several]) == user + answer
    later = user + "<|im_start|>assistant\n42<|im_end|>\n" + user
    assert rendered("hermes", [USER, REASON, USER]) == later
    called = '{"name": "get_weather", "arguments": {"city": "K\u00f6ln", "a": 1}}'
    call = f"<tool_call>\n{called}\n</tool_call>"
    results = "\n<tool_response>\n20 degrees\n</tool_response>" * 2
    assert rendered("hermes", [USER, CALLS, RESULT, RESULT]) == (
        f"{user}<|im_start|>assistant\n{call}{call}<|im_end|>\n"
        f"<|im_start|>user{results}<|im_end|>\n"
    )


def test_llama3_style():
    def header(role, content):
        return f"<|start_header_id|>{role}<|end_header_id|>\n\n{content}<|eot_id|>"

    user = header("user", "Hello <b> & 'you'\n caf\u00e9")
    date = "Today: 1 Jan 2025\n"
    start = "<s>" + header("system", date)
    assert rendered("llama3", [USER], date_string="1 Jan 2025") == start + user
    indented = json.dumps(TOOLS[0], ensure_ascii=False, indent=4)
    assert rendered("llama3", [SYSTEM, USER], TOOLS, date_string="1 Jan 2025") == (
        "<s>" + header("system", f"{date}{indented}\n\nBe brief.") + user
    )
    call = header(
        "assistant", '{"name": "get_weather", "parameters": {"city": "K\u00f6ln", "a": 1}}'
    )
    result = header("ipython", '"20 degrees"')
    assert rendered("llama3", [USER, CALL, RESULT], date_string="1 Jan 2025") == (
        start + user + call + result
    )
    with pytest.raises(kw.InvalidArgument, match="refuses the messages: This model only supports"):
        rendered("llama3", [USER, CALLS])
    before = datetime.datetime.now().strftime("%d %b %Y")
    text = rendered("llama3", [USER])
    after = datetime.datetime.now().strftime("%d %b %Y")
    assert any(f"Today: {date}\n" in text for date in (before, after))


def test_mistral_style():
    user = "[INST]Hello <b> & 'you'\n caf\u00e9  [/INST]"
    tools = "[AVAILABLE_TOOLS]get_weather[/AVAILABLE_TOOLS]"
    assert rendered("mistral", [SYSTEM, USER, ANSWER]) == f"<s>{user} Hi!</s>"
    assert rendered("mistral", [USER], TOOLS) == f"<s>{tools}{user}"
    assert rendered("mistral", [USER, CALL, RESULT]) == (
        f"<s>{user}[TOOL_CALLS]get_weather(a=1,city=K\u00f6ln)</s>"
        '[TOOL_RESULTS]{"content": 20 degrees}[/TOOL_RESULTS]'
    )
    with pytest.raises(kw.InvalidArgument, match=r"Only user and assistant roles .* got stranger"):
        rendered("mistral", [{"role": "stranger", "content": "x"}])


def test_style_of_parts():
    assert rendered("parts", [PARTED, ANSWER], add_generation_prompt=True) == (
        "<start>user\none<image>2<end>\n<start>model\nHi!<end>\n<start>model\n"
    )
    documents = [{"title": "T", "text": "text"}, {"title": "U", "text": "<&>"}]
    assert rendered("parts", [USER], documents=documents) == (
        "<start>user\nHello <b> & 'you'\n caf\u00e9<end>\n[1] T: text\n[2] U: <&>\n"
    )
    template = llm.ChatTemplate(chats.PARTS)
    text, ranges = template.generation_ranges([USER, ANSWER, USER, ANSWER])
    assert text == template.render([USER, ANSWER, USER, ANSWER])
    assert [text[begin:end] for begin, end in ranges] == ["Hi!<end>"] * 2


def test_all_styles_beside_transformers():
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    base = tokenizers.Tokenizer(tokenizers.models.BPE())
    theirs = transformers.PreTrainedTokenizerFast(tokenizer_object=base, **VARIABLES)
    compared = 0
    for style, text in chats.STYLES.items():
        for messages in chats.CONVERSATIONS:
            same = [
                {**each, "reasoning_content": each["reasoning"]} if "reasoning" in each else each
                for each in messages
            ]  # templates have either name for it
            for tools in (None, TOOLS):
                for prompt in (False, True):
                    options = {"tools": tools, "add_generation_prompt": prompt}
                    try:
                        expected = theirs.apply_chat_template(
                            same, chat_template=text, tokenize=False, **options
                        )
                    except Exception:
                        with pytest.raises(ValueError):
                            rendered(style, messages, **options)
                    else:
                        compared += 1
                        assert rendered(style, messages, **options) == expected
    assert compared > 80


TURNS = [SYSTEM, USER, ANSWER, {"role": "user", "content": "Bye"}]
HELLO = "Hello <b> & 'you'\n caf\u00e9"
BUILT_IN = {
    "chatml": f"<|im_start|>system\nBe brief.\n<|im_end|>\n<|im_start|>user\n{HELLO}  <|im_end|>\n"
    "<|im_start|>assistant\nHi!<|im_end|>\n<|im_start|>user\nBye<|im_end|>\n"
    "<|im_start|>assistant\n",
    "llama2": f"<s>[INST] <<SYS>>\nBe brief.\n<</SYS>>\n\n{HELLO} [/INST] Hi! </s>"
    "<s>[INST] Bye [/INST]",
    "llama3": "<s><|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|>"
    f"<|start_header_id|>user<|end_header_id|>\n\n{HELLO}<|eot_id|>"
    "<|start_header_id|>assistant<|end_header_id|>\n\nHi!<|eot_id|>"
    "<|start_header_id|>user<|end_header_id|>\n\nBye<|eot_id|>"
    "<|start_header_id|>assistant<|end_header_id|>\n\n",
    "mistral": f"<s>[INST] Be brief.\n\n{HELLO} [/INST] Hi!</s>[INST] Bye [/INST]",
    "gemma": f"<s><start_of_turn>user\nBe brief.\n\n{HELLO}<end_of_turn>\n<start_of_turn>model\nHi!"
    "<end_of_turn>\n<start_of_turn>user\nBye<end_of_turn>\n<start_of_turn>model\n",
}


@pytest.mark.parametrize("name", BUILT_IN)
def test_built_in_templates(name):
    template = llm.ChatTemplate(name, **VARIABLES)
    assert template.render(TURNS, add_generation_prompt=True) == BUILT_IN[name]
    assert llm.ChatTemplate.names() == sorted(BUILT_IN)
    if name in ("llama2", "mistral", "gemma"):
        with pytest.raises(kw.InvalidArgument, match="roles must be user, assistant"):
            template.render([USER, USER])


def test_named_templates():
    texts = {"default": "D", "tool_use": "T{{ tools | length }}", "rag": "R"}
    template = llm.ChatTemplate(texts)
    assert template.render([USER]) == "D" and template.text == "D"
    assert template.render([USER], TOOLS) == "T1"
    assert template.render([USER], TOOLS, name="rag") == "R"
    with pytest.raises(kw.InvalidArgument, match=r"no template 'x'.*default, rag, tool_use"):
        template.render([USER], name="x")
    assert llm.ChatTemplate({"only": "O"}).render([USER], TOOLS) == "O"
    with pytest.raises(kw.InvalidArgument, match="one of rag, tool_use"):
        llm.ChatTemplate({"tool_use": "T", "rag": "R"}).render([USER])


def test_going_on_with_the_last_message():
    template = llm.ChatTemplate("chatml")
    begun = [USER, {"role": "assistant", "content": "The answer is "}]
    text = template.render(begun, continue_final_message=True)
    assert text.endswith("<|im_start|>assistant\nThe answer is ")
    trimmed = llm.ChatTemplate("{% for m in messages %}{{ m.content | trim }}|{% endfor %}")
    assert trimmed.render(begun, continue_final_message=True).endswith("|The answer is")
    parts = [{"role": "user", "content": [{"type": "text", "text": "a"}]}]
    joined = llm.ChatTemplate("{{ messages[0].content[0].text }}|")
    assert joined.render(parts, continue_final_message=True) == "a"
    assert parts[0]["content"][0]["text"] == "a"  # the message of the caller is as it was
    with pytest.raises(kw.InvalidArgument, match="pass one of them"):
        template.render(begun, continue_final_message=True, add_generation_prompt=True)
    with pytest.raises(kw.InvalidArgument, match="does not write the last message"):
        llm.ChatTemplate("fixed").render(begun, continue_final_message=True)


@dataclasses.dataclass
class Message:
    role: str
    content: str


def test_what_a_template_sees():
    class Dumped:
        def model_dump(self):
            return {"role": "user", "content": "dumped", "name": None}

    shown = llm.ChatTemplate("{{ messages | tojson }}{{ extra | tojson }}")
    text = shown.render(
        [Message("user", "data"), Dumped(), {"role": "tool", "content": "", "call": None}],
        extra=[np.bool_(False), np.float32(0.5), np.ones(2), (1, 2)],
    )
    assert text == (
        '[{"role": "user", "content": "data"}, {"role": "user", "content": "dumped"}, '
        '{"role": "tool", "content": ""}][false, 0.5, "<ndarray>", [1, 2]]'
    )


@pytest.mark.parametrize(
    ("messages", "said"),
    [([], "no messages"), ("Hi", "a list of"), ({"role": "user"}, "a list of"), (3, "a list of"),
     (["Hi"], "message 0 must be an object"), ([USER, {"content": "x"}], 'message 1 has no "role"'),
     ([{"role": 3}], 'has no "role"')],
)  # fmt: skip
def test_wrong_messages(messages, said):
    with pytest.raises(kw.InvalidArgument, match=said):
        llm.ChatTemplate("chatml").render(messages)
    with pytest.raises(kw.InvalidArgument, match="tool 0 must be a JSON schema"):
        llm.ChatTemplate("chatml").render([USER], [print])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{% for %}", "line 1: "),
        ("a\n{{ x", "line 2: unexpected end"),
        ("{% endif %}", "line 1: .*endif"),
        ("{{ x | nofilter }}", "line 1: No filter named 'nofilter'"),
        ("{% include 'x' %}", ""),
    ],
)
def test_wrong_templates(text, said):
    with pytest.raises(llm.ModelError, match=f"chat template.*{said}"):
        llm.ChatTemplate(text).render([USER])
    for wrong in (3, {"default": 3}, ["a"]):
        with pytest.raises(kw.ArgumentError, match="a template is a text"):
            llm.ChatTemplate(wrong)
    with pytest.raises(kw.InvalidArgument, match=r"no templates"):
        llm.ChatTemplate({})


@pytest.mark.parametrize(
    "text",
    [
        "{{ messages.__class__ }}{{ messages.__class__.__mro__ }}",
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ raise_exception.__globals__ }}",
        "{{ strftime_now.__globals__['datetime'] }}",
        "{{ messages.append(1) }}",
        "{{ messages[0].update(role='x') }}",
        "{{ '{0.__class__}'.format(1) }}{{ ('{0.__class__.__init__}'|attr('format'))(messages) }}",
        "{% set ns = namespace(_x=1) %}",
        "{{ cycler.__init__.__globals__.os }}",
        "{{ self.__init__.__globals__ }}",
        "{{ undefined_name.attribute }}",
        "{{ 1 / 0 }}",
    ],
)
def test_the_sandbox(text):
    """Such a template fails, or writes nothing of Python's own."""
    try:
        shown = llm.ChatTemplate(text).render([USER])
    except llm.ModelError as error:
        assert "chat template" in str(error)
    else:
        assert "<class" not in shown and "module" not in shown and "function" not in shown


@pytest.mark.parametrize(
    "text",
    [
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "{% for a in range(10**9) %}{% endfor %}",
        "{{ 'a' * 10**10 }}",
        "{{ [1] * 10**10 }}{{ 10**10 * 'a' }}",
        "{{ 9**(9**9) }}",
        "{{ 'a'.ljust(10**10) }}",
        "{% macro m(n) %}{{ m(n) }}{{ m(n) }}{% endmacro %}{{ m(1) }}",
        "{% macro m(n) %}{% if n %}{{ m(n-1) }}{{ m(n-1) }}{% endif %}{% endmacro %}{{ m(60) }}",
    ],
)
def test_templates_that_would_never_end(text, monkeypatch):
    monkeypatch.setattr("kernwright.llm._chat.sandbox._MOST_STEPS", 100_000)
    with pytest.raises(llm.ModelError, match="chat template"):
        llm.ChatTemplate(text).render([USER])


def test_loops_have_all_their_variables():
    text = (
        "{% for x in messages %}{{ loop.index }}/{{ loop.length }} {{ loop.first }} "
        "{{ loop.last }} {{ loop.revindex0 }} {{ loop.previtem }} {{ (loop.nextitem or x).role }} "
        "{{ loop.cycle('a', 'b') }};"
        "{% else %}none{% endfor %}{% for y in [] %}{% else %}empty{% endfor %}"
        "{% for k, v in {'a': 1}.items() if v %}{{ k }}{{ v }}{% endfor %}"
        "{% for n in [[1, [2]]] recursive %}{% if n is iterable %}({{ loop(n) }}){% else %}{{ n }}"
        "{% endif %}{% endfor %}{% for z in nothing %}{% endfor %}"
    )
    assert llm.ChatTemplate(text).render([{"role": "r"}, {"role": "s"}]) == (
        "1/2 True False 1  s a;2/2 False True 0 {'role': 'r'} s b;emptya1(1(2))"
    )
