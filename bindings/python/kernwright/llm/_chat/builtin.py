"""Templates of well-known formats, for files without one."""

from __future__ import annotations

from collections.abc import Container

_CHATML = """\
{%- for message in messages -%}
{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}
{%- endfor -%}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif -%}
"""

_LLAMA3 = """\
{{- bos_token -}}
{%- for message in messages -%}
{{ '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' }}
{{- message['content'] | trim + '<|eot_id|>' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif -%}
"""

# The first message may be of the system; users and the assistant take turns after it.
_TURNS = """\
{%- if messages[0]['role'] == 'system' -%}
{%- set system = messages[0]['content'] | trim -%}{%- set turns = messages[1:] -%}
{%- else -%}
{%- set system = '' -%}{%- set turns = messages -%}
{%- endif -%}
{%- for message in turns -%}
{%- if message['role'] != ['user', 'assistant'][loop.index0 % 2] -%}
{{ raise_exception('after a system message, the roles must be user, assistant, user, ...') }}
{%- endif -%}
{%- set content = message['content'] | trim -%}
"""

_LLAMA2 = (
    _TURNS
    + """\
{%- if message['role'] == 'user' -%}
{%- if loop.first and system -%}
{%- set content = '<<SYS>>\\n' + system + '\\n<</SYS>>\\n\\n' + content -%}
{%- endif -%}
{{ bos_token + '[INST] ' + content + ' [/INST]' }}
{%- else -%}
{{ ' ' + content + ' ' + eos_token }}
{%- endif -%}
{%- endfor -%}
"""
)

_MISTRAL = (
    "{{- bos_token -}}"
    + _TURNS
    + """\
{%- if message['role'] == 'user' -%}
{%- if loop.first and system -%}{%- set content = system + '\\n\\n' + content -%}{%- endif -%}
{{ '[INST] ' + content + ' [/INST]' }}
{%- else -%}
{{ ' ' + content + eos_token }}
{%- endif -%}
{%- endfor -%}
"""
)

_GEMMA = (
    "{{- bos_token -}}"
    + _TURNS
    + """\
{%- if loop.first and system -%}{%- set content = system + '\\n\\n' + content -%}{%- endif -%}
{%- set role = 'model' if message['role'] == 'assistant' else message['role'] -%}
{{ '<start_of_turn>' + role + '\\n' + content + '<end_of_turn>\\n' }}
{%- endfor -%}
{%- if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif -%}
"""
)

TEMPLATES = {
    "chatml": _CHATML,
    "gemma": _GEMMA,
    "llama2": _LLAMA2,
    "llama3": _LLAMA3,
    "mistral": _MISTRAL,
}

# A token of the models of one format alone.
_MARKS = (
    ("<|im_start|>", "chatml"),
    ("<|start_header_id|>", "llama3"),
    ("<start_of_turn>", "gemma"),
    ("[INST]", "mistral"),
)


def fitting(special: Container[str]) -> str | None:
    """The name of the template for a vocabulary with these special tokens, or None."""
    return next((name for mark, name in _MARKS if mark in special), None)
