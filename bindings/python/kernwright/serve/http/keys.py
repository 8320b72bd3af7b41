"""Keys of clients, compared in constant time."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from kernwright.errors import InvalidArgument
from kernwright.serve.http.errors import ApiError

__all__ = ["Keys"]


class Keys:
    """The keys that open the server. Without any, everybody may use it.

    They are kept as digests, by the name that logs show: the name before a colon in a file, else a
    number.
    """

    def __init__(self, keys: Mapping[str, str]) -> None:
        self._digests = {name: _digest(key.encode()) for name, key in keys.items()}

    @classmethod
    def of(cls, keys: Iterable[str], files: Iterable[str]) -> Keys:
        """Keys of the command line and of files, one on a line, "name:key" or a key alone; lines
        with # at their beginning are none. Raises InvalidArgument."""
        named: dict[str, str] = {}
        for key in keys:
            _add(named, f"key{len(named) + 1}", key, "--api-key")
        for file in files:
            try:
                lines = Path(file).read_text(encoding="utf-8").splitlines()
            except UnicodeDecodeError as error:
                raise InvalidArgument(f"{file} is not UTF-8: {error}") from None
            before = len(named)
            for number, line in enumerate(lines, 1):
                text = line.strip()
                if text and not text.startswith("#"):
                    name, colon, key = text.partition(":")
                    own = name.strip() if colon else f"key{len(named) + 1}"
                    _add(named, own, key.strip() if colon else text, f"{file}:{number}")
            if len(named) == before:
                raise InvalidArgument(f"{file} has no key: one on a line, or name:key")
        return cls(named)

    def __bool__(self) -> bool:
        return bool(self._digests)

    def user(self, headers: Sequence[tuple[bytes, bytes]]) -> str | None:
        """The name of the key in the headers (Authorization: Bearer ..., X-Api-Key); None where no
        key is needed. Raises ApiError with 401."""
        if not self._digests:
            return None
        given = None
        for name, value in headers:
            if name == b"authorization" and value[:7].lower() == b"bearer ":
                given = value[7:].strip()
            elif name == b"x-api-key" and given is None:
                given = value.strip()
        if given is None:
            raise ApiError(
                401, "an API key is needed: send it as Authorization: Bearer KEY",
                code="missing_api_key",
            )  # fmt: skip
        digest, found = _digest(given), None
        for user, each in self._digests.items():  # all of them: the time tells nothing
            if hmac.compare_digest(each, digest):
                found = user
        if found is None:
            raise ApiError(401, "the API key is wrong", code="invalid_api_key")
        return found


def _digest(key: bytes) -> bytes:
    return hashlib.sha256(key).digest()


def _add(named: dict[str, str], name: str, key: str, place: str) -> None:
    if len(key) < 8:
        raise InvalidArgument(f"{place}: a key has 8 characters at least, got {len(key)}")
    if name in named or not name:
        raise InvalidArgument(f"{place}: the name {name!r:.60} is empty or there already")
    named[name] = key
