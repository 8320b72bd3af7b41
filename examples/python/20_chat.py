"""A conversation with a tool: messages to a prompt, tokens to text as they come, text to messages.

No model is needed: a list of tokens stands for what it would write.
"""

import base64
import json

from kernwright import llm

try:
    import jinja2  # noqa: F401
    import tokenizers  # noqa: F401
except ImportError as missing:
    print(f"nothing to show: {missing} (pip install 'kernwright[llm]')")
    raise SystemExit(0) from None

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "description": "The weather of a city",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        },
    }
]
TEMPLATE = """\
{%- if tools %}<|im_start|>system
Tools: {{ tools | map(attribute='function') | list | tojson }}<|im_end|>
{% endif %}
{%- for message in messages %}<|im_start|>{{ message.role }}
{{ message.content }}
{%- for call in message.tool_calls or [] %}
<tool_call>
{{ {'name': call.function.name, 'arguments': call.function.arguments} | tojson }}
</tool_call>
{%- endfor %}<|im_end|>
{% endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


def byte_tokenizer():
    """A tokenizer in which each byte is a token."""
    with open("bytes.tiktoken", "wb") as file:
        for byte in range(256):
            file.write(base64.b64encode(bytes([byte])) + b" %d\n" % byte)
    marks = {"<|im_start|>": 256, "<|im_end|>": 257}
    return llm.Tokenizer(
        "bytes.tiktoken", pre="cl100k", special_tokens=marks, chat_template=TEMPLATE
    )


def answer(tokenizer, messages, written):
    """What a server does: it shows parts of the message while tokens come."""
    prompt = tokenizer.encode_chat(messages, TOOLS)
    stream = tokenizer.stream(prompt, skip_special_tokens=False)
    check = llm.StopCheck(stream, eos=tokenizer.eos, max_tokens=500)
    parser = llm.MessageParser(
        llm.MessageParser.format_of(TEMPLATE), tools=TOOLS, prompt=tokenizer.decode(prompt)
    )
    for token in tokenizer.encode(written):
        for part in parser.push(check.push(token)):
            print(part.kind, repr(part.name or part.text))
        if check.reason is not None:
            break
    parser.finish()
    return parser.message


def main():
    tokenizer = byte_tokenizer()
    messages = [{"role": "user", "content": "How is it in K\u00f6ln?"}]
    call = json.dumps({"name": "weather", "arguments": {"city": "K\u00f6ln"}}, ensure_ascii=False)
    messages.append(
        answer(tokenizer, messages, f"<tool_call>\n{call}\n</tool_call><|im_end|>never shown")
    )
    function = messages[-1]["tool_calls"][0]["function"]
    assert function == {"name": "weather", "arguments": {"city": "K\u00f6ln"}}
    messages.append({"role": "tool", "content": "20 degrees, sun"})
    messages.append(answer(tokenizer, messages, "20 \u00b0C and sunny.<|im_end|>"))
    assert messages[-1]["content"] == "20 \u00b0C and sunny."
    text = tokenizer.chat_template.render(messages, TOOLS)
    assert text.endswith(
        "<|im_start|>tool\n20 degrees, sun<|im_end|>\n"
        "<|im_start|>assistant\n20 \u00b0C and sunny.<|im_end|>\n"
    )
    print(text)


if __name__ == "__main__":
    main()
