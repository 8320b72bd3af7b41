"""Batches of tokens from shards, in an order that a seed decides and a checkpoint keeps."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from kernwright import _core
from kernwright._core import Array
from kernwright.errors import ArgumentError, InvalidArgument, StoreError
from kernwright.random._sequence import whole
from kernwright.train._shard_file import ShardFile

__all__ = ["Shards"]


class Shards:
    """Batches of the tokens in shards of llm.c's format (write_shard() makes them), without end.

    Each `next()` gives inputs and targets, int32 arrays (batch_size, length) on the device; targets
    are the tokens behind the inputs. A row is a window of a shard; window k begins at token
    k * length. With a `seed` the windows of all shards are shuffled anew in each epoch, else they
    come in their order. The ranks of a `world` share each epoch: none sees another's windows. What
    is left of an epoch after the last whole batch of all ranks is left out.

    `paths` are files, or one pattern ("data/*.bin"), whose files come in the order of their names.
    Files are memory-mapped. `vocabulary` is the number of tokens that a model knows. Raises
    StoreError, with the file's name and sizes, for shards that are damaged or cut off, also when
    that happens later, and for tokens beyond the vocabulary; InvalidArgument where the shards have
    less than one batch.

    >>> kw.train.write_shard("a.bin", range(13))
    >>> shards = kw.train.Shards(["a.bin"], batch_size=2, length=3)
    >>> inputs, targets = next(shards)
    >>> inputs.numpy().tolist(), targets.numpy().tolist()
    ([[0, 1, 2], [3, 4, 5]], [[1, 2, 3], [4, 5, 6]])
    """

    def __init__(
        self, paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], batch_size: int,
        length: int, *, seed: int | None = None, rank: int = 0, world: int = 1,
        vocabulary: int | None = None, device: Any = None,
    ) -> None:  # fmt: skip
        for name, value in (("batch_size", batch_size), ("length", length), ("world", world)):
            if isinstance(value, bool) or not hasattr(value, "__index__") or value < 1:
                raise InvalidArgument(f"{name} is a number from 1 on, got {value!r:.40}")
        self.batch_size, self.length, self.world = int(batch_size), int(length), int(world)
        self.seed = None if seed is None else whole(seed, "seed")
        self.rank = whole(rank, "rank")
        self.vocabulary = None if vocabulary is None else whole(vocabulary, "vocabulary")
        if self.rank >= self.world:
            raise InvalidArgument(f"rank lies from 0 to world - 1, got {rank} of {world}")
        self._device = device
        self._files: list[ShardFile] = []
        try:
            for path in _found(paths):
                self._files.append(ShardFile(path))
        except BaseException:
            self.close()
            raise
        windows = [max(0, file.count - 1) // self.length for file in self._files]
        self._ends = np.cumsum(windows)
        self.batches = int(self._ends[-1]) // (self.batch_size * self.world)
        if self.batches == 0:
            tokens = sum(file.count for file in self._files)
            self.close()
            raise InvalidArgument(
                f"{tokens} tokens in {len(windows)} shards are {sum(windows)} windows of "
                f"{self.length}, and one batch takes {self.batch_size} for each of {self.world} "
                "ranks"
            )
        self.epoch = 0
        self.batch = 0
        self._order: tuple[int, np.ndarray[Any, Any]] | None = None

    @property
    def tokens(self) -> int:
        """The tokens of all shards."""
        return sum(file.count for file in self._files)

    def __iter__(self) -> Iterator[tuple[Array, Array]]:
        return self

    def __next__(self) -> tuple[Array, Array]:
        host = self._host_batch()
        both = _core._from_numpy(host, self._device)
        self._advance()
        return both[0], both[1]

    def read_into(self, inputs: Array, targets: Array) -> None:
        """The next batch into arrays of (batch_size, length), for a graph that has recorded them.

        >>> kw.train.write_shard("a.bin", range(13))
        >>> shards = kw.train.Shards(["a.bin"], batch_size=2, length=3)
        >>> inputs, targets = kw.empty((2, 3), "int32"), kw.empty((2, 3), "int32")
        >>> shards.read_into(inputs, targets)
        >>> targets[1].numpy()
        array([4, 5, 6], dtype=int32)
        """
        for name, each in (("inputs", inputs), ("targets", targets)):
            if each.shape != (self.batch_size, self.length):
                raise InvalidArgument(
                    f"{name} have the shape {(self.batch_size, self.length)}, got {each.shape}"
                )
        host = self._host_batch()
        inputs[...] = host[0]
        targets[...] = host[1]
        self._advance()

    def state(self) -> dict[str, Any]:
        """The place in the data, for JSON: the next batch is the one behind those so far.

        >>> kw.train.write_shard("a.bin", range(13))
        >>> shards = kw.train.Shards(["a.bin"], batch_size=2, length=3)
        >>> _ = next(shards)
        >>> shards.state()["epoch"], shards.state()["batch"]
        (0, 1)
        """
        files = [[os.path.basename(file.name), file.count] for file in self._files]
        return {"epoch": self.epoch, "batch": self.batch, **self._setting(), "files": files}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Goes on where state() was taken. Raises InvalidArgument, with all that differs, for a
        state of other files, sizes, seeds or numbers of ranks.

        >>> kw.train.write_shard("a.bin", range(13))
        >>> shards = kw.train.Shards(["a.bin"], batch_size=2, length=3)
        >>> state, first = shards.state(), next(shards)
        >>> shards.restore(state)
        >>> kw.all(next(shards)[0] == first[0]).item()
        True
        """
        own = self.state()
        differing = [
            f"{name} was {state.get(name)!r:.200} and is {own[name]!r:.200}"
            for name in (*self._setting(), "files")
            if state.get(name) != own[name]
        ]
        epoch, batch = state.get("epoch"), state.get("batch")
        if not (isinstance(epoch, int) and isinstance(batch, int) and 0 <= batch < self.batches):
            differing.append(
                f"batch {batch!r:.40} of epoch {epoch!r:.40} of {self.batches} batches"
            )
        if differing:
            raise InvalidArgument(f"the state is of other data: {'; '.join(differing)}")
        self.epoch, self.batch = int(state["epoch"]), int(state["batch"])

    def close(self) -> None:
        """Closes the files.

        >>> kw.train.write_shard("a.bin", range(13))
        >>> kw.train.Shards(["a.bin"], batch_size=2, length=3).close()
        """
        for file in self._files:
            file.close()

    def _setting(self) -> dict[str, Any]:
        return {
            "seed": self.seed, "batch_size": self.batch_size, "length": self.length,
            "world": self.world,
        }  # fmt: skip

    def _advance(self) -> None:
        self.batch += 1
        if self.batch == self.batches:
            self.epoch, self.batch = self.epoch + 1, 0

    def _host_batch(self) -> np.ndarray[Any, Any]:
        """Inputs and targets of the next batch, (2, batch_size, length)."""
        made = np.empty((2, self.batch_size, self.length), np.int32)
        begin = (self.batch * self.world + self.rank) * self.batch_size
        windows = self._windows()[begin : begin + self.batch_size]
        numbers = np.searchsorted(self._ends, windows, "right")
        for number in np.unique(numbers):
            self._files[number].require_whole()
        for row, (number, window) in enumerate(zip(numbers, windows, strict=True)):
            file = self._files[number]
            first = int(self._ends[number - 1]) if number > 0 else 0
            place = (int(window) - first) * self.length
            span = file.tokens[place : place + self.length + 1]
            made[0, row], made[1, row] = span[:-1], span[1:]
            if self.vocabulary is not None and int(span.max()) >= self.vocabulary:
                at = place + int(span.argmax())
                raise file.wrong(
                    f"has the token {int(span.max())} at {at}, and the vocabulary "
                    f"{self.vocabulary} tokens"
                )
        return made

    def _windows(self) -> np.ndarray[Any, Any]:
        """The windows of this epoch in their order."""
        if self._order is None or self._order[0] != self.epoch:
            count = int(self._ends[-1])
            if self.seed is None:
                order = np.arange(count)
            else:
                # RandomState's numbers are the same in all versions of NumPy.
                words = [self.seed & 0xFFFFFFFF, self.seed >> 32, self.epoch]
                order = np.random.RandomState(words).permutation(count)
            self._order = self.epoch, order
        return self._order[1]

    def __repr__(self) -> str:
        return (
            f"<kw.train.Shards of {self.tokens} tokens in {len(self._files)} files, batch "
            f"{self.batch} of {self.batches}, epoch {self.epoch}>"
        )


def _found(paths: Any) -> list[Any]:
    if isinstance(paths, (str, os.PathLike)):
        found: list[Any] = [paths] if os.path.exists(paths) else sorted(glob.glob(os.fspath(paths)))
        if not found:
            raise StoreError(f"{os.fspath(paths)!r} matches no file")
        return found
    try:
        found = list(paths)
    except TypeError:
        raise ArgumentError(f"paths are files or a pattern, got {paths!r:.80}") from None
    if not found:
        raise InvalidArgument("no shards are given")
    return found
