"""Files of tokens in llm.c's format: a header of 1024 bytes, then 16 bits for each token."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from kernwright._files.opening import OpenFile
from kernwright._files.writing import replacing
from kernwright.errors import ArgumentError, InvalidArgument

__all__ = ["write_shard"]

# https://github.com/karpathy/llm.c, llmc/dataloader.h: 256 int32, of which the first three are
# these two and the number of tokens.
MAGIC, VERSION = 20240520, 1
HEADER = 1024


class ShardFile:
    """An open shard; its tokens are read from the file's memory map."""

    def __init__(self, path: Any) -> None:
        opened = OpenFile(path)
        try:
            self.name = opened.name
            if opened.size < HEADER:
                raise opened.wrong(
                    f"is no shard of tokens, or cut off: it has {opened.size} bytes, and its "
                    f"header alone {HEADER}"
                )
            magic, version, count = np.frombuffer(opened.bytes(0, 12), "<i4").tolist()
            if magic != MAGIC:
                raise opened.wrong(
                    f"is no shard of tokens: it begins with {magic}, and shards with {MAGIC}"
                )
            if version != VERSION:
                raise opened.wrong(f"is a shard of version {version}, and {VERSION} is known")
            self.count = count
            self._opened = opened
            self.require_whole()
            self.tokens = np.memmap(opened.file, "<u2", "r", HEADER, (count,)) if count else _NONE
        except BaseException:
            opened.close()
            raise

    def require_whole(self) -> None:
        """Raises StoreError where the file has not the size that its header tells: a part of the
        map that is not there any more would end the process."""
        size, wanted = os.fstat(self._opened.file.fileno()).st_size, HEADER + 2 * self.count
        if self.count < 0 or size != wanted:
            raise self._opened.wrong(
                f"is cut off or damaged: it has {size} bytes, and {self.count} tokens with the "
                f"header {wanted}"
            )

    def wrong(self, what: str) -> Exception:
        return self._opened.wrong(what)

    def close(self) -> None:
        self._opened.close()


_NONE: np.ndarray[Any, Any] = np.empty(0, "<u2")


def write_shard(path: str | os.PathLike[str], tokens: Any) -> None:
    """Writes tokens, whole numbers from 0 to 65535 in one axis, as a shard in llm.c's format. It
    takes the place of `path` only when it is whole. Raises StoreError.

    >>> kw.train.write_shard("text.bin", [5, 3, 9, 0])
    """
    values = np.asarray(tokens)
    if values.ndim != 1 or (values.size > 0 and values.dtype.kind not in "iu"):
        raise ArgumentError(
            f"tokens are whole numbers in one axis, got {values.dtype} of shape {values.shape}"
        )
    if values.size > 0 and not (int(values.min()) >= 0 and int(values.max()) < 1 << 16):
        raise InvalidArgument(
            f"tokens lie from 0 to 65535, got {int(values.min())} to {int(values.max())}"
        )
    if values.size >= 1 << 31:
        raise InvalidArgument(f"a shard has less than 2**31 tokens, got {values.size}")
    header = np.zeros(HEADER // 4, "<i4")
    header[:3] = MAGIC, VERSION, values.size
    data = memoryview(values.astype("<u2").tobytes())
    with replacing(path) as (file, _):
        file.write(header.tobytes())
        for begin in range(0, len(data), 1 << 24):
            file.write(data[begin : begin + (1 << 24)])
