"""Checkpoints of a training run, written while it goes on."""

from __future__ import annotations

import json
import os
import pathlib
import threading
from collections.abc import Mapping
from typing import Any

import numpy as np

from kernwright import _core
from kernwright._core import Array
from kernwright._files.opening import path_of
from kernwright._files.safetensors import Entry, SafeTensors, head_of, ordered_entries
from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.optim._nest import told
from kernwright.random import default_generator
from kernwright.train import _folder
from kernwright.train._contents import Contents, contents_of, restorable
from kernwright.train._folder import Content

__all__ = ["Checkpoint"]

_OPTIONS = ("number", "strict", "cast", "settings")  # of load()
_ALIGNMENT = 256  # bytes between the arrays in page-locked memory


class Checkpoint:
    """A folder of checkpoints, of which the last `keep` stay.

    save() takes objects by name: modules, optimisers and whatever else has state_dict() and
    load_state_dict() over its own arrays (LossScale, EMA, Accumulator); what has state() and
    restore() (Shards, kw.random.Generator); nests of arrays; and plain values. The default
    generator of kw.random and those within modules (dropout) are kept, too. Arrays lie in
    safetensors files, one an object, the rest in state.json. A run that goes on from a checkpoint
    equals one without a break bit for bit.

    A checkpoint has its name (0000001, 0000002, ...) when all of it has reached the disk, so a
    process that is killed at any moment leaves the last whole one. Not thread-safe; one process
    writes to a folder.

    >>> model = kw.nn.Linear(2, 3)
    >>> optimizer = kw.optim.AdamW(model)
    >>> checkpoint = kw.train.Checkpoint("run")
    >>> checkpoint.save(model=model, optimizer=optimizer, step=7)
    >>> checkpoint.wait()
    >>> checkpoint.load(model=model, optimizer=optimizer)
    {'step': 7}
    """

    def __init__(self, path: str | os.PathLike[str], *, keep: int = 1) -> None:
        if isinstance(keep, bool) or not isinstance(keep, int) or keep < 1:
            raise InvalidArgument(f"keep is a number of checkpoints from 1 on, got {keep!r:.40}")
        self.path = pathlib.Path(path_of(path))
        self.keep = keep
        self._host: np.ndarray[Any, Any] | None = None
        self._engine: _core.TransferEngine | None = None
        self._writer: threading.Thread | None = None
        self._written = threading.Event()
        self._error: BaseException | None = None

    @property
    def numbers(self) -> list[int]:
        """The numbers of the whole checkpoints on the disk, in order."""
        return _folder.finished(self.path)

    @property
    def newest(self) -> pathlib.Path | None:
        """The folder of the last whole checkpoint; None where there is none."""
        numbers = self.numbers
        return _folder.folder_of(self.path, numbers[-1]) if numbers else None

    def save(self, model: Any = None, optimizer: Any = None, **objects: Any) -> None:
        """Begins a checkpoint of `objects` as they are now on the current stream.

        Arrays are copied into page-locked memory, which is kept for the next time; later work of
        the stream waits for the copies, the host does not. A thread waits for them and writes. A
        checkpoint before it that is still being written is waited for. Raises what its writing
        met (StoreError), OutOfMemory, ArgumentError for an object that cannot be kept.

        >>> checkpoint = kw.train.Checkpoint("run", keep=2)
        >>> checkpoint.save(weights={"w": kw.ones(3)}, step=1)
        >>> checkpoint.wait()
        """
        self.wait()
        found, values = {}, {}
        for name, value in _named(model, optimizer, objects).items():
            contents = contents_of(name, value)
            if contents is None:
                values[name] = value
            else:
                found[name] = contents
        state = {
            "format": 1,
            "objects": {name: contents.notes for name, contents in found.items()},
            "values": values,
            "random": default_generator().state(),
        }
        text = json.dumps(state)  # as it is now
        entries = {name: ordered_entries(c.arrays) for name, c in found.items() if c.arrays}
        transfers, contents_list = self._copy(entries, found)
        self._written.clear()
        self._writer = threading.Thread(
            target=self._write, args=(transfers, contents_list, json.loads(text)),
            name="kernwright-checkpoint",
        )  # fmt: skip
        try:
            self._writer.start()
        except RuntimeError:  # no more threads
            self._writer = None
            raise

    def _copy(
        self, entries: Mapping[str, list[Entry]], found: Mapping[str, Contents]
    ) -> tuple[list[Any], list[Content]]:
        """Begins the copies to the host; the files that they make."""
        arrays = [entry.array for each in entries.values() for entry in each]
        places, end = [], 0
        for array in arrays:
            places.append(end)
            end += -(-array.nbytes // _ALIGNMENT) * _ALIGNMENT
        if arrays and (self._host is None or self._host.nbytes < end):
            self._host = None
            self._host = _core.pinned((end,), "uint8", device=arrays[0].device)
        transfers: list[Any] = []
        pieces = []
        try:
            for array, place in zip(arrays, places, strict=True):
                piece = self._piece(array, place)
                pieces.append(piece.reshape(-1).view(np.uint8))
                if array.size > 0:
                    source = array if array.is_contiguous else array.copy()
                    transfers.append(self._engine_of(source).download(source, piece))
            for transfer in transfers:
                transfer.wait_on()
        except BaseException:
            for transfer in transfers:
                transfer.wait()
            raise
        files, next_piece = [], iter(pieces)
        for name, each in entries.items():
            head = head_of(each, found[name].metadata)
            files.append(Content(f"{name}.safetensors", [head, *(next(next_piece) for _ in each)]))
        return transfers, files

    def _piece(self, array: Array, place: int) -> np.ndarray[Any, Any]:
        host = self._host
        assert host is not None
        return host[place : place + array.nbytes].view(array.dtype).reshape(array.shape)

    def _engine_of(self, array: Array) -> _core.TransferEngine:
        if self._engine is None or self._engine.device != array.device:
            self._engine = _core.TransferEngine(device=array.device)
        return self._engine

    def _write(self, transfers: list[Any], contents: list[Content], state: Any) -> None:
        try:
            for transfer in transfers:
                transfer.wait()
            _folder.publish(self.path, contents, state, self.keep)
        except BaseException as error:
            self._error = error
        finally:
            self._written.set()

    def wait(self) -> None:
        """Waits until the checkpoint that is being written is on the disk. Raises what its writing
        met, once: StoreError, or an error of the device.

        >>> kw.train.Checkpoint("run").wait()
        """
        if self._writer is not None:
            # Not join(): until 3.13 Python takes a thread for ended when Ctrl-C interrupts that.
            while not self._written.wait(1.0):
                if self._writer.ident is None:  # Ctrl-C came before it began
                    break
            self._writer = None
        error, self._error = self._error, None
        if error is not None:
            raise error

    def load(
        self, model: Any = None, optimizer: Any = None, *, number: int | None = None,
        strict: bool = True, cast: bool = False, settings: bool = True, **objects: Any,
    ) -> dict[str, Any]:  # fmt: skip
        """Sets objects back to what the last checkpoint, or that of `number`, has under their
        names; returns the plain values.

        All files are checked first, and everything is compared before anything is changed: objects
        and arrays that are missing or unexpected, shapes and dtypes that differ raise one
        InvalidArgument with all of them. With ``strict=False`` objects and arrays that only one
        side has are left alone; with `cast` other dtypes are converted; with ``settings=False``
        optimisers keep their hyperparameters. Raises StoreError with the file that is missing, cut
        off or damaged.

        >>> weights = {"w": kw.ones(3)}
        >>> checkpoint = kw.train.Checkpoint("run")
        >>> checkpoint.save(weights=weights, step=1); checkpoint.wait()
        >>> weights["w"].fill(0.0)
        >>> checkpoint.load(weights=weights), weights["w"].numpy().tolist()
        ({'step': 1}, [1.0, 1.0, 1.0])
        """
        self.wait()
        numbers = self.numbers
        if not numbers:
            raise _folder.missing(self.path)
        if number is not None and number not in numbers:
            raise InvalidArgument(f"{self.path} has the checkpoints {numbers}, not {number!r:.40}")
        folder = _folder.folder_of(self.path, numbers[-1] if number is None else number)
        state = _folder.read_state(folder)
        objects = _named(model, optimizer, objects)
        found = {name: _object(name, value) for name, value in objects.items()}
        readers = {
            name: SafeTensors(folder / f"{name}.safetensors")
            for name in found
            if f"{name}.safetensors" in state["files"]
        }
        try:
            _require_fit(folder, state, found, readers, strict, cast)
            _restore(state, objects, found, strict, settings)
            for name, reader in readers.items():
                _fill(found[name].arrays, reader)
        finally:
            for reader in readers.values():
                reader.close()
        default_generator().restore(state["random"])
        return dict(state["values"])

    def __repr__(self) -> str:
        return f"kw.train.Checkpoint({str(self.path)!r}, keep={self.keep}: {self.numbers})"


def _named(model: Any, optimizer: Any, objects: Mapping[str, Any]) -> dict[str, Any]:
    """All objects by name; None stands for no model and no optimiser."""
    named = {"model": model, "optimizer": optimizer}
    made = {name: value for name, value in named.items() if value is not None} | dict(objects)
    for name in made:
        if not name.isidentifier() or name in _OPTIONS:
            raise ArgumentError(
                f"{name!r:.60} is no name for an object of a checkpoint: names are identifiers, "
                f"and none of {', '.join(_OPTIONS)}"
            )
    return made


def _object(name: str, value: Any) -> Contents:
    contents = contents_of(name, value)
    if contents is None:
        raise ArgumentError(
            f"{name} is a plain value, {value!r:.60}: load() returns those of the checkpoint"
        )
    return contents


def _require_fit(
    folder: pathlib.Path, state: Any, found: Mapping[str, Contents],
    readers: Mapping[str, SafeTensors], strict: bool, cast: bool,
) -> None:  # fmt: skip
    """Raises InvalidArgument with all that does not fit."""
    problems: dict[str, list[str]] = {
        "missing": [name for name in found if name not in state["objects"]],
        "unexpected": [name for name in state["objects"] if name not in found],
        "wrong shapes": [],
        "wrong dtypes": [],
        "other groups": [],
    }
    for name in [name for name in found if name in state["objects"]]:
        own = found[name].arrays
        reader: Mapping[str, Any] = readers.get(name, {})
        problems["missing"] += [f"{name}: {each}" for each in own if each not in reader]
        problems["unexpected"] += [f"{name}: {each}" for each in reader if each not in own]
        for each in (each for each in own if each in reader):
            shape, dtype = readers[name].shape(each), readers[name].dtype(each)
            if shape != own[each].shape:
                problems["wrong shapes"].append(
                    f"{name}: {each} has {shape} in place of {own[each].shape}"
                )
            if dtype != own[each].dtype.name and not cast:
                problems["wrong dtypes"].append(
                    f"{name}: {each} is {dtype} in place of {own[each].dtype.name}"
                )
        ours, theirs = (
            [(group.get("rule"), group.get("names")) for group in notes.get("settings", [])]
            for notes in (found[name].notes, state["objects"][name])
        )
        if ours != theirs:
            problems["other groups"].append(f"{name}: {theirs!r:.200} in place of {ours!r:.200}")
    if not strict:
        problems |= {"missing": [], "unexpected": []}
    if any(problems.values()):
        raise InvalidArgument(
            f"the checkpoint {folder} does not fit, and nothing has changed: {told(problems)}"
        )


def _restore(
    state: Any, objects: Mapping[str, Any], found: Mapping[str, Contents], strict: bool,
    settings: bool,
) -> None:  # fmt: skip
    """Sets back what is in state.json; when something refuses, all others become as they were."""
    undo = []
    try:
        for name, contents in found.items():
            notes = state["objects"].get(name, {})
            for kind, (restore, now) in restorable(objects[name], contents).items():
                if kind == "settings" and not settings:
                    continue
                if kind not in notes or (kind == "random" and set(notes[kind]) != set(now)):
                    if strict:
                        raise InvalidArgument(
                            f"the checkpoint has another {kind} of {name}: {notes.get(kind)!r:.200}"
                        )
                    continue
                undo.append((restore, now))
                restore(notes[kind])
    except BaseException:
        for restore, before in undo:
            restore(before)
        raise


def _fill(arrays: Mapping[str, Array], reader: SafeTensors) -> None:
    """Reads the arrays of a file into those of the same names."""
    direct = [
        name
        for name, array in arrays.items()
        if name in reader and array.is_contiguous and array.dtype.name == reader.dtype(name)
    ]
    reader.read_into({name: arrays[name] for name in direct})
    for name, array in arrays.items():
        if name in reader and name not in direct:
            array[...] = reader[name].to(array.device).astype(array.dtype, copy=False)
