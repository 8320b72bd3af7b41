"""Headers of safetensors files, which may come from anybody: checked before anything is made."""

from __future__ import annotations

from typing import Any, NamedTuple

from kernwright._files.opening import OpenFile

_LONGEST = 100_000_000
_MOST_AXES = 64
# Bits of an element.
_BITS = {
    "F64": 64, "F32": 32, "F16": 16, "BF16": 16, "I64": 64, "I32": 32, "I16": 16, "I8": 8,
    "U64": 64, "U32": 32, "U16": 16, "U8": 8, "BOOL": 8, "F8_E4M3": 8, "F8_E5M2": 8, "C64": 64,
    "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "F6_E2M3": 6, "F6_E3M2": 6, "F4": 4,
}  # fmt: skip


class Tensor(NamedTuple):
    """What the header says of an array; its place counts from the end of the header."""

    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


def parse_json(opened: OpenFile, text: bytes) -> Any:
    """JSON without names that occur twice and without huge numbers. Raises StoreError."""
    import json
    from collections import Counter

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(items)
        if len(made) != len(items):
            twice = Counter(name for name, _ in items).most_common(1)[0][0]
            raise opened.wrong(f"has the name {twice!r:.80} twice in its header")
        return made

    def whole(digits: str) -> int:
        if len(digits) > 20:
            raise opened.wrong(f"has a number of {len(digits)} digits in its header")
        return int(digits)

    def refuse(text: str) -> Any:
        raise opened.wrong(f"has {text:.40} in its header")

    try:
        return json.loads(
            text.decode("utf-8"), object_pairs_hook=pairs, parse_int=whole, parse_constant=refuse
        )
    except UnicodeDecodeError:
        raise opened.wrong("has a header that is not UTF-8") from None
    except RecursionError:
        raise opened.wrong("has a header that is nested too deep") from None
    except json.JSONDecodeError as error:
        raise opened.wrong(f"has a header that is no JSON: {error}") from None


def parse_safetensors(opened: OpenFile) -> tuple[dict[str, str], dict[str, Tensor], int]:
    """Metadata, arrays by name in the order of their places, and where the first byte of them is.

    As the format wants it: the arrays follow each other without gaps and end with the file.
    """
    if opened.size < 8:
        raise opened.wrong(f"has {opened.size} bytes: too few for a safetensors file")
    length = int.from_bytes(opened.bytes(0, 8), "little")
    if length > min(_LONGEST, opened.size - 8):
        raise opened.wrong(
            f"is no safetensors file, or cut off: its header has {length} bytes, of at most "
            f"{min(_LONGEST, opened.size - 8)}"
        )
    text = opened.bytes(8, length)
    if text[:1] != b"{":
        raise opened.wrong("is no safetensors file: its header does not begin with {")
    header = parse_json(opened, text)
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise opened.wrong("has metadata that are no texts")
    found = {name: _tensor(opened, name, entry) for name, entry in header.items()}
    ordered = dict(sorted(found.items(), key=lambda item: item[1][2:]))
    at = 0
    for name, tensor in ordered.items():
        if tensor.begin != at:
            raise opened.wrong(
                f"is damaged: {name!r:.80} begins at {tensor.begin}, and what is before it ends "
                f"at {at}"
            )
        at = tensor.end
    if at != opened.size - 8 - length:
        raise opened.wrong(
            f"is damaged, or cut off: its arrays have {at} bytes, and there are "
            f"{opened.size - 8 - length}"
        )
    return metadata, ordered, 8 + length


def _tensor(opened: OpenFile, name: str, entry: Any) -> Tensor:
    def wrong(what: str) -> Exception:
        return opened.wrong(f"is damaged: {name!r:.80} {what}")

    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise wrong("is not described by dtype, shape and data_offsets")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in _BITS:
        raise wrong(f"is of the unknown dtype {dtype!r:.40}")
    if not _counts(shape) or len(shape) > _MOST_AXES:
        raise wrong(f"has the shape {shape!r:.80}")
    if not _counts(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise wrong(f"lies at {offsets!r:.80}")
    bits = _BITS[dtype]
    for extent in shape:
        bits *= extent
    if bits != 8 * (offsets[1] - offsets[0]):
        raise wrong(
            f"of {dtype} and shape {tuple(shape)} has {bits / 8:.15g} bytes, and its place "
            f"{offsets[1] - offsets[0]}"
        )
    return Tensor(dtype, tuple(shape), *offsets)


def _counts(value: Any) -> bool:
    return isinstance(value, list) and all(
        type(each) is int and 0 <= each < 1 << 63 for each in value
    )
