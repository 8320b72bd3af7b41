"""Chat templates in the styles of models' own, and conversations for them."""

# Tools as JSON between tags, reasoning cut out of earlier answers, namespaces, slices.
HERMES = """\
{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0].role == 'system' %}{{- messages[0].content + '\\n\\n' }}{%- endif %}
    {{- "# Tools\\n<tools>" }}
    {%- for tool in tools %}
        {{- "\\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "\\n</tools><|im_end|>\\n" }}
{%- elif messages[0].role == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
{%- endif %}
{%- set ns = namespace(last=messages|length - 1, found=false) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if not ns.found and message.role == "user" and message.content is string %}
        {%- set ns.found = true %}
        {%- set ns.last = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.role == "user" or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {%- set reasoning = '' %}
        {%- if message.reasoning_content is string %}
            {%- set reasoning = message.reasoning_content %}
        {%- endif %}
        {{- '<|im_start|>assistant\\n' }}
        {%- if loop.index0 > ns.last and reasoning %}
            {{- '<think>\\n' + reasoning.strip('\\n') + '\\n</think>\\n\\n' }}
        {%- endif %}
        {{- message.content }}
        {%- for call in message.tool_calls or [] %}
            {%- set call = call.function if call.function else call %}
            {{- '<tool_call>\\n{"name": "' }}
            {{- call.name }}
            {{- '", "arguments": ' }}
            {{- call.arguments if call.arguments is string else call.arguments | tojson }}
            {{- '}\\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == "tool" %}
        {%- if loop.first or (messages[loop.index0 - 1].role != "tool") %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\\n<tool_response>\\n' + message.content + '\\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}
            {{- '<|im_end|>\\n' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}
"""

# A date, indented JSON, tests of tojson, set blocks, comments.
LLAMA3 = """\
{{- bos_token }}
{#- The date of today, where none is given. #}
{%- if not date_string is defined %}
    {%- if strftime_now is defined %}
        {%- set date_string = strftime_now("%d %b %Y") %}
    {%- else %}
        {%- set date_string = "26 Jul 2024" %}
    {%- endif %}
{%- endif %}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content'] | trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\nToday: " + date_string + "\\n" }}
{%- if tools is not none %}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\\n\\n" }}
    {%- endfor %}
{%- endif %}
{{- system_message }}{{- "<|eot_id|>" }}
{%- for message in messages %}
    {%- if not (message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' }}
        {{- message['content'] | trim + '<|eot_id|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls | length == 1 %}
            {{- raise_exception("This model only supports single tool-calls at once!") }}
        {%- endif %}
        {%- set call = message.tool_calls[0].function %}
        {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' -}}
        {{- '{"name": "' + call.name + '", "parameters": ' }}
        {{- call.arguments | tojson }}
        {{- "}<|eot_id|>" }}
    {%- else %}
        {{- "<|start_header_id|>ipython<|end_header_id|>\\n\\n" }}
        {%- if message.content is mapping or message.content is iterable %}
            {{- message.content | tojson }}
        {%- else %}
            {{- message.content }}
        {%- endif %}
        {{- "<|eot_id|>" }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
"""

# Checks of roles, selectattr, break and continue, macros, whitespace kept.
MISTRAL = """\
{%- macro arguments_of(call) -%}
    {%- for key, value in call.arguments | dictsort -%}
        {{ key }}={{ value }}{{ "," if not loop.last }}
    {%- endfor -%}
{%- endmacro -%}
{%- set users = messages | selectattr("role", "equalto", "user") | list %}
{{- bos_token }}
{%- for message in messages %}
    {%- if message["role"] == "system" %}{% continue %}{% endif %}
    {%- if message["role"] == "user" %}
        {%- if tools is not none and message == users[-1] %}
            {%- set functions = tools | map(attribute="function") %}
            {%- set names = functions | map(attribute="name") | join(", ") %}
            {{- "[AVAILABLE_TOOLS]" + names + "[/AVAILABLE_TOOLS]" }}
        {%- endif %}
        {{- "[INST]" + message["content"] + "[/INST]" }}
    {%- elif message["tool_calls"] is defined and message.tool_calls is not none %}
        {{- "[TOOL_CALLS]" }}
        {%- for call in message.tool_calls %}
            {{- call.function.name }}({{ arguments_of(call.function) }})
        {%- endfor %}
        {{- eos_token }}
    {%- elif message["role"] == "assistant" %}
        {{- " " + message["content"]|trim + eos_token }}
    {%- elif message["role"] == "tool" %}
        {{- '[TOOL_RESULTS]{"content": ' + message.content|string + "}[/TOOL_RESULTS]" }}
    {%- else %}
        {{- raise_exception("Only user and assistant roles are supported, got " + message.role) }}
    {%- endif %}
    {%- if message["role"] == "stop" %}{% break %}{% endif %}
{%- endfor %}
"""

# Lines with trimmed blocks, parts of content, the tag of generation.
PARTS = """\
{% for message in messages %}
  {% if message.role == 'assistant' %}
<start>model
{% generation %}{{ message.content }}<end>{% endgeneration %}

  {% else %}
<start>{{ message.role }}
{% if message.content is string %}{{ message.content | trim }}{% else -%}
    {% for part in message.content -%}
        {% if part.type == 'text' %}{{ part.text | trim }}{% else %}<{{ part.type }}>{% endif -%}
    {% endfor %}
{% endif %}<end>
  {% endif %}
{% endfor %}
{% for document in documents or [] %}
[{{ loop.index }}] {{ document.title }}: {{ document.text }}
{% endfor %}
{% if add_generation_prompt %}
<start>model
{% endif %}
"""

STYLES = {"hermes": HERMES, "llama3": LLAMA3, "mistral": MISTRAL, "parts": PARTS}

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": 'Weather of a "city" <now> & caf\u00e9',
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        },
    }
]
SYSTEM = {"role": "system", "content": "Be brief.\n"}
USER = {"role": "user", "content": "Hello <b> & 'you'\n caf\u00e9  "}
ANSWER = {"role": "assistant", "content": "Hi!", "tool_calls": None}
REASON = {"role": "assistant", "content": "42", "reasoning": "\nSix by seven.\n"}
CALL = {
    "role": "assistant",
    "content": "",
    "tool_calls": [
        {"id": "1", "type": "function",
         "function": {"name": "get_weather", "arguments": {"city": "K\u00f6ln", "a": 1}}}
    ],
}  # fmt: skip
CALLS = {**CALL, "tool_calls": CALL["tool_calls"] * 2}
RESULT = {"role": "tool", "tool_call_id": "1", "content": "20 degrees"}
PARTED = {
    "role": "user",
    "content": [
        {"type": "text", "text": " one "},
        {"type": "image"},
        {"type": "text", "text": "2"},
    ],
}
CONVERSATIONS = [
    [USER],
    [SYSTEM, USER],
    [SYSTEM, USER, ANSWER, USER],
    [USER, REASON],
    [USER, REASON, USER],
    [USER, CALL, RESULT],
    [SYSTEM, USER, CALLS, RESULT, RESULT, ANSWER],
    [PARTED],
    [{"role": "stranger", "content": "x"}],
]
