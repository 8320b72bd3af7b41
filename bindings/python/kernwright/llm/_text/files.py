"""Files and folders of tokenizers: the reader of each, and the files beside tokenizer.json."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kernwright.errors import InvalidArgument, StoreError
from kernwright.llm._errors import ModelError
from kernwright.llm._fields import Fields, parse_json, read_bytes, read_json, read_text
from kernwright.llm._text.gguf import read_gguf
from kernwright.llm._text.sentencepiece import read_sentencepiece
from kernwright.llm._text.source import Source, added_token
from kernwright.llm._text.tiktoken import is_tiktoken, read_tekken, read_tiktoken

_VOCABULARIES = ("tokenizer.json", "tokenizer.model", "tekken.json", "qwen.tiktoken")
_ROLES = (
    "bos_token",
    "eos_token",
    "unk_token",
    "sep_token",
    "pad_token",
    "cls_token",
    "mask_token",
)


def read_source(path: Any, pre: str | None, special: Mapping[str, int] | None) -> Source:
    """A tokenizer from a file, a folder, an open kw.Gguf, or as it is. Raises ModelError."""
    import kernwright as kw

    if isinstance(path, Source):
        return path
    if isinstance(path, kw.Gguf):
        return read_gguf(path._opened.name, path.metadata, pre)
    try:
        name = os.fsdecode(path)
    except TypeError:
        raise InvalidArgument(f"a tokenizer is a path or a kw.Gguf, got {path!r:.80}") from None
    if os.path.isdir(name):
        return _read_folder(Path(name), pre, special)
    if not os.path.exists(name):
        raise ModelError(f"{name} does not exist: give a folder, or one of its tokenizer's files")
    return _read_file(Path(name), pre, special)


def has_tokenizer(folder: str) -> bool:
    """Whether a model's folder has a file of a vocabulary."""
    path = Path(folder)
    return any((path / name).is_file() for name in _VOCABULARIES) or any(path.glob("*.tiktoken"))


def _read_folder(folder: Path, pre: str | None, special: Mapping[str, int] | None) -> Source:
    there = [folder / name for name in _VOCABULARIES] + sorted(folder.glob("*.tiktoken"))
    for path in there:
        if path.is_file():
            return _read_file(path, pre, special)
    files = ", ".join(sorted(each.name for each in folder.iterdir())[:12]) or "nothing"
    raise ModelError(
        f"{folder} has no tokenizer: none of {', '.join(_VOCABULARIES)}, *.tiktoken; there is "
        + files
    )


def _read_file(path: Path, pre: str | None, special: Mapping[str, int] | None) -> Source:
    file = str(path)
    if path.suffix == ".json":
        text = read_text(path)
        fields = parse_json(file, text)
        if "vocab" in fields.values and "config" in fields.values:
            source = read_tekken(file, fields.values)
        else:
            source = _read_library_json(fields, text)
    else:
        content = read_bytes(path)
        if content[:4] == b"GGUF":
            return _read_gguf_file(file, pre)
        if is_tiktoken(content) or path.suffix == ".tiktoken":
            source = read_tiktoken(file, content, pre, special)
        else:
            source = read_sentencepiece(file, content)
    _add_neighbours(source, path.parent)
    return source


def _read_gguf_file(file: str, pre: str | None) -> Source:
    import kernwright as kw

    try:
        with kw.Gguf(file) as opened:
            return read_gguf(file, opened.metadata, pre)
    except StoreError as error:
        raise ModelError(str(error)) from None


def _read_library_json(fields: Fields, text: str) -> Source:
    model = fields.need("model", dict)
    if not isinstance(model.get("vocab"), (dict, list)):
        Fields(fields.file, model, "model").need("vocab", dict)
    fields.get("added_tokens", list)
    _require_prefixes(Fields(fields.file, model, "model"))
    return Source(fields.file, dict(fields.values), text)


def _require_prefixes(model: Fields) -> None:
    """The library joins the parts of a merge without the second one's prefix, and ends the process
    where that is shorter than the prefix. Raises ModelError."""
    prefix = model.get("continuing_subword_prefix", str, "").encode()
    for i, merge in enumerate(model.get("merges", list, []) if prefix else ()):
        pair = merge.split(" ") if isinstance(merge, str) else merge
        second = pair[-1] if isinstance(pair, list) and pair else None
        if isinstance(second, str) and not second.encode(errors="replace").startswith(prefix):
            raise model.wrong(
                "merges",
                f"has {second!r:.40} at {i}, which does not begin with {prefix.decode()!r}",
            )


def _add_neighbours(source: Source, folder: Path) -> None:
    """Adds the fields of the files beside the vocabulary, the more special files last."""
    for name in ("config.json", "generation_config.json"):
        if (folder / name).is_file():
            fields = read_json(folder / name)
            for part in (fields, fields.object("text_config")):
                source.eos += _ids(part, "eos_token_id")
    for name in ("special_tokens_map.json", "tokenizer_config.json"):
        if (folder / name).is_file():
            fields = read_json(folder / name)
            for role in _ROLES:
                if fields.has(role):
                    source.named[role] = _content(fields, role)
    if (folder / "added_tokens.json").is_file():
        fields = read_json(folder / "added_tokens.json")
        special = set(source.named.values())
        tokens = {text: fields.need(text, int) for text in fields.values}
        _add_tokens(source, [added_token(i, t, special=t in special) for t, i in tokens.items()])
    if (folder / "tokenizer_config.json").is_file():
        _add_config(source, read_json(folder / "tokenizer_config.json"))
    if (folder / "chat_template.json").is_file():
        source.templates["default"] = read_json(folder / "chat_template.json").need(
            "chat_template", str
        )
    if (folder / "chat_template.jinja").is_file():
        source.templates["default"] = read_text(folder / "chat_template.jinja")
    for path in sorted((folder / "additional_chat_templates").glob("*.jinja")):
        source.templates[path.stem] = read_text(path)


def _add_config(source: Source, fields: Fields) -> None:
    source.add_bos = fields.get("add_bos_token", bool, source.add_bos)
    source.add_eos = fields.get("add_eos_token", bool, source.add_eos)
    model = source.spec.get("model")
    pairs = isinstance(model, dict) and model.get("type") == "BPE"
    # In texts of byte pairs, spaces before signs are part of the text.
    source.clean_up = fields.get("clean_up_tokenization_spaces", bool, False) and not pairs
    new = []
    for text, each in fields.get("added_tokens_decoder", dict, {}).items():
        entry = Fields(fields.file, each, f"added_tokens_decoder.{text}")
        content = entry.need("content", str)
        if not text.isdigit() or len(text) > 8:
            raise fields.wrong("added_tokens_decoder", f"has the id {text!r:.40}")
        flags = {name: entry.get(name, bool, False) for name in ("special", "lstrip", "rstrip")}
        new.append(added_token(int(text), content, **flags))
    _add_tokens(source, new)
    if fields.has("chat_template"):
        source.templates.update(_templates(fields))


def _add_tokens(source: Source, tokens: list[dict[str, Any]]) -> None:
    """Adds tokens, unless the tokenizer has them already."""
    there = list(source.spec.get("added_tokens") or ())
    known = {each.get("content") for each in there}
    new = [each for each in tokens if each["content"] not in known]
    if new:
        source.spec["added_tokens"] = there + sorted(new, key=lambda each: int(each["id"]))
        source.text = None


def _templates(fields: Fields) -> dict[str, str]:
    """A template, or a list of templates with names."""
    value = fields.values["chat_template"]
    if isinstance(value, str):
        return {"default": fields.need("chat_template", str)}
    if isinstance(value, dict):
        named = Fields(fields.file, value, "chat_template")
        return {name: named.need(name, str) for name in value}
    found = {}
    for i, each in enumerate(fields.need("chat_template", list)):
        entry = Fields(fields.file, each, f"chat_template[{i}]")
        found[entry.need("name", str)] = entry.need("template", str)
    return found


def _content(fields: Fields, role: str) -> str:
    """A special token: its text, or an object with it."""
    if isinstance(fields.values[role], dict):
        text: str = fields.object(role).need("content", str)
    else:
        text = fields.need(role, str)
    return text


def _ids(fields: Fields, name: str) -> list[int]:
    """An id or a list of ids."""
    value = fields.values.get(name)
    found = [] if value is None else value if isinstance(value, list) else [value]
    for id in found:
        if type(id) is not int or id < 0:
            raise fields.wrong(name, f"must be token ids, got {id!r:.40}")
    return list(found)


def surrounding_tokens(
    source: Source, ids: Mapping[str, int]
) -> list[list[tuple[str, int]]] | None:
    """The tokens before and after each text; None where the post-processor decides."""
    if source.add_bos is None and source.add_eos is None:
        return None
    found = []
    for add, role in ((source.add_bos, "bos_token"), (source.add_eos, "eos_token")):
        token = source.named.get(role, "")
        found.append([(token, ids[token])] if add and token in ids else [])
    return found
