"""The bodies of requests: their fields, and bytes to structs."""

from __future__ import annotations

import difflib
import re
from typing import Any, TypeVar

import msgspec

from kernwright.serve.http.errors import ApiError

__all__ = [
    "ChatBody",
    "CompletionBody",
    "CountTokensBody",
    "DetokenizeBody",
    "EmbeddingBody",
    "LoadAdapterBody",
    "MessagesBody",
    "MoreSampling",
    "ResponsesBody",
    "SamplingFields",
    "TokenizeBody",
    "UnloadAdapterBody",
    "chat_body",
    "decoded",
    "has_form",
    "is_light",
]

Number = float | None
Whole = int | None
Flag = bool | None


class StreamOptions(msgspec.Struct, kw_only=True):
    """What a stream has beside its events of text."""

    include_usage: Flag = None
    continuous_usage_stats: Flag = None


class StructuredOutputs(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The form of an answer, as vLLM has it: one of these."""

    json: str | dict[str, Any] | None = None
    regex: str | None = None
    choice: list[str] | None = None
    grammar: str | None = None
    json_object: Flag = None


class JsonSchema(msgspec.Struct, kw_only=True):
    """The JSON schema of an answer, and what clients tell of it."""

    name: str | None = None
    description: str | None = None
    schema: Any = None
    strict: Flag = None


class ResponseFormat(msgspec.Struct, kw_only=True):
    """The form that an answer must have."""

    type: str
    json_schema: JsonSchema | None = None


class MoreSampling(msgspec.Struct, kw_only=True):
    """What clients send to any endpoint that generates, also where OpenAI's has no such field."""

    stop: str | list[str] | None = None
    presence_penalty: Number = None
    frequency_penalty: Number = None
    logit_bias: dict[str, float] | None = None
    seed: Whole = None
    # Not OpenAI's, but of clients for other servers.
    top_k: Whole = None
    min_p: Number = None
    repetition_penalty: Number = None
    min_tokens: Whole = None
    ignore_eos: Flag = None
    stop_token_ids: list[int] | None = None
    include_stop_str_in_output: Flag = None
    skip_special_tokens: Flag = None
    allowed_token_ids: list[int] | None = None
    bad_words: list[str] | None = None
    truncate_prompt_tokens: Whole = None
    structured_outputs: StructuredOutputs | None = None
    guided_json: str | dict[str, Any] | None = None
    guided_regex: str | None = None
    guided_choice: list[str] | None = None
    guided_grammar: str | None = None
    priority: Whole = None
    timeout: Number = None
    cache_salt: str | None = None


class SamplingFields(MoreSampling, kw_only=True):
    """The fields of chats and completions. Those without effect are told in docs."""

    model: str | None = None
    max_tokens: Whole = None
    temperature: Number = None
    top_p: Number = None
    n: Whole = None
    stream: Flag = None
    stream_options: StreamOptions | None = None
    user: str | None = None
    add_special_tokens: Flag = None
    response_format: ResponseFormat | None = None
    return_token_ids: Flag = None
    return_tokens_as_token_ids: Flag = None
    prompt_logprobs: Whole = None


class ChatBody(SamplingFields, kw_only=True):
    """POST /v1/chat/completions."""

    messages: list[dict[str, Any]]
    max_completion_tokens: Whole = None
    logprobs: Flag = None
    top_logprobs: Whole = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: Flag = None
    reasoning_effort: str | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    add_generation_prompt: Flag = None
    continue_final_message: Flag = None
    documents: list[dict[str, Any]] | None = None
    include_reasoning: Flag = None
    functions: Any = None
    function_call: Any = None
    modalities: list[str] | None = None
    audio: Any = None


class CompletionBody(SamplingFields, kw_only=True):
    """POST /v1/completions. `prompt` stays bytes until it is known what it is."""

    prompt: msgspec.Raw
    suffix: str | None = None
    echo: Flag = None
    logprobs: Whole = None
    best_of: Whole = None


class LoadAdapterBody(msgspec.Struct, kw_only=True):
    """POST /v1/load_lora_adapter. `model` is the one that the adapter is of."""

    lora_name: str
    lora_path: str
    model: str | None = None


class UnloadAdapterBody(msgspec.Struct, kw_only=True):
    """POST /v1/unload_lora_adapter."""

    lora_name: str
    model: str | None = None


class ResponsesBody(MoreSampling, kw_only=True):
    """POST /v1/responses."""

    input: str | list[dict[str, Any]]
    model: str | None = None
    instructions: str | None = None
    max_output_tokens: Whole = None
    temperature: Number = None
    top_p: Number = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: Flag = None
    reasoning: dict[str, Any] | None = None
    text: dict[str, Any] | None = None
    stream: Flag = None
    stream_options: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    include: list[str] | None = None
    truncation: str | None = None
    background: Flag = None
    previous_response_id: str | None = None
    user: str | None = None


class CountTokensBody(msgspec.Struct, kw_only=True):
    """POST /v1/messages/count_tokens."""

    messages: list[dict[str, Any]]
    model: str | None = None
    system: str | list[dict[str, Any]] | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: dict[str, Any] | None = None
    thinking: dict[str, Any] | None = None
    output_config: dict[str, Any] | None = None
    cache_control: dict[str, Any] | None = None


class MessagesBody(CountTokensBody, kw_only=True):
    """POST /v1/messages."""

    max_tokens: int
    temperature: Number = None
    top_p: Number = None
    top_k: Whole = None
    stop_sequences: list[str] | None = None
    stream: Flag = None
    metadata: dict[str, Any] | None = None


class EmbeddingBody(msgspec.Struct, kw_only=True):
    """POST /v1/embeddings."""

    input: msgspec.Raw
    model: str | None = None
    encoding_format: str | None = None
    dimensions: Whole = None
    truncate_prompt_tokens: Whole = None
    user: str | None = None


class TokenizeBody(msgspec.Struct, kw_only=True):
    """POST /tokenize: a prompt or messages."""

    model: str | None = None
    prompt: str | None = None
    messages: list[dict[str, Any]] | None = None
    tools: list[dict[str, Any]] | None = None
    add_special_tokens: Flag = None
    add_generation_prompt: Flag = None
    continue_final_message: Flag = None
    chat_template_kwargs: dict[str, Any] | None = None
    return_token_strs: Flag = None


class DetokenizeBody(msgspec.Struct, kw_only=True):
    """POST /detokenize."""

    tokens: list[int]
    model: str | None = None


# Fields of OpenAI and vLLM that change nothing here: bookkeeping of platforms, and hints.
IGNORED = frozenset(
    {
        *("metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key"),
        *("prompt_cache_retention", "prompt_cache_options", "verbosity", "prediction"),
        *("web_search_options", "moderation", "request_id", "session_id"),
        *("spaces_between_special_tokens", "guided_decoding_backend"),
    }
)
# Fields of vLLM without a meaning here, and the values with which clients send them.
NEUTRAL: dict[str, tuple[Any, ...]] = {
    "use_beam_search": (False,), "length_penalty": (1,), "early_stopping": (False,),
    "include_reasoning": (True,), "logits_processors": ([],), "documents": ([],),
    "return_tokens_as_token_ids": (False,), "truncation_side": ("left",), "watermarking": (False,),
    "mm_processor_kwargs": ({},), "media_io_kwargs": ({},), "echo": (False,),
    "thinking_token_budget": (-1,), "stream_interval": (1,), "vllm_xargs": ({},),
}  # fmt: skip
Body = TypeVar("Body", bound=msgspec.Struct)
_ONE_PROMPT = re.compile(rb'\s*("|\[\s*\d)')
_PLACE = re.compile(r"(.*) - at `(?:key in )?\$(.*)`$", re.DOTALL)


def decoded(content: bytes, kind: type[Body], *, ignore_unknown: bool = False) -> Body:
    """A body. Raises ApiError, which names the field, for wrong JSON, wrong types, missing and
    unknown fields. Unknown ones that are null are none."""
    if not content.strip():
        raise ApiError(400, "the body is empty: it is a JSON object", code="invalid_json")
    try:
        made = msgspec.json.decode(content, type=kind)
        if not ignore_unknown:
            known = kind.__struct_fields__
            fields = msgspec.json.decode(content, type=dict[str, msgspec.Raw])
            if len(fields) > len(known) or not fields.keys() <= set(known):
                _refuse_unknown(fields, known)
    except msgspec.ValidationError as error:
        raise _wrong_field(str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _wrong_json(content, error) from None
    except RecursionError:
        raise ApiError(400, "the body is nested too deep", code="invalid_json") from None
    return made


def has_form(body: msgspec.Struct) -> bool:
    """Whether a body may want its answer in a form, whose compile takes time."""
    forms = (
        "response_format", "text", "output_config", "structured_outputs", "guided_json",
        "guided_regex", "guided_choice", "guided_grammar",
    )  # fmt: skip
    return getattr(body, "tool_choice", None) not in (None, "auto", "none") or any(
        getattr(body, name, None) is not None for name in forms
    )


def is_light(body: msgspec.Struct) -> bool:
    """Whether a body makes one request of one text, and has no call of the model before it."""
    prompt = getattr(body, "prompt", None)
    heavy = ("n", "best_of", "prompt_logprobs", "echo", "tools", "chat_template_kwargs")
    return all(getattr(body, name, None) is None for name in heavy) and (
        prompt is None or _ONE_PROMPT.match(prompt) is not None
    )


def chat_body(fields: dict[str, Any]) -> ChatBody:
    """A chat of fields that another endpoint has for it. Raises ApiError for wrong types."""
    try:
        return msgspec.convert(fields, ChatBody)
    except msgspec.ValidationError as error:
        raise _wrong_field(str(error)) from None


def _wrong_json(content: bytes, error: Exception) -> ApiError:
    """Bytes that are not UTF-8 are another error for each version of msgspec."""
    message = f"the body is no JSON: {error}"
    try:
        content.decode()
    except UnicodeDecodeError as wrong:
        message = f"the body is not UTF-8: {wrong}"
    return ApiError(400, message, code="invalid_json")


def _wrong_field(message: str) -> ApiError:
    found = _PLACE.match(message)
    what, place = (found[1], found[2].lstrip(".")) if found else (message, "")
    if what.startswith("Object missing required field"):
        name = what.split("`")[1]
        place = f"{place}.{name}" if place else name
        return ApiError(400, f"the field {place} is missing", param=place, code="missing_field")
    what = what[:1].lower() + what[1:]
    place = place or "body"
    return ApiError(400, f"{place}: {what}", param=place, code="invalid_type")


def _refuse_unknown(fields: dict[str, msgspec.Raw], known: tuple[str, ...]) -> None:
    for name, value in fields.items():
        if name not in known and name not in IGNORED and bytes(value) != b"null":
            if name in NEUTRAL:
                _require_neutral(name, msgspec.json.decode(value))
                continue
            near = difflib.get_close_matches(name, known, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise ApiError(
                400, f"the field {name:.60} is unknown here{hint}", param=name[:60],
                code="unknown_field",
            )  # fmt: skip


def _require_neutral(name: str, value: Any) -> None:
    # Python takes 0 and false as equal, JSON does not.
    if not any(value == each and (type(value) is bool) == (type(each) is bool)
               for each in NEUTRAL[name]):  # fmt: skip
        told = msgspec.json.encode(NEUTRAL[name][0]).decode()
        raise ApiError(
            400, f"{name} is not supported: it may only be {told}, which changes nothing",
            param=name, code="unsupported_field",
        )  # fmt: skip
