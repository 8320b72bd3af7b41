"""Store: results of tuning sessions in files, found again by kernel, device and problem."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kernwright import _core
from kernwright._support.files import told_of
from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.tune._config import Config, mapping, plain

Row = dict[str, Any]

# Members of a key that a near hit may differ in.
PARTS = ("source", "space", "device", "nvrtc", "driver", "policy", "objective", "problem")


@dataclass(frozen=True)
class Match:
    """The result for a query, an exact or a near one.

    `differences` are pairs of a part of the key ("driver") and a text ("driver: 12080, not
    13000"); an exact hit has none.

    After the example of kw.tune.Store:

    >>> match = store.find(session.key)[0]
    >>> match.exact, match.config == best.config
    (True, True)
    """

    row: Row
    path: str
    differences: tuple[tuple[str, str], ...]
    distance: float

    @property
    def exact(self) -> bool:
        """Whether nothing differs from the query."""
        return not self.differences

    @property
    def config(self) -> Config:
        """The winning configuration."""
        return Config(self.row["config"])


def _sources(paths: tuple[Any, ...]) -> tuple[list[Any], list[tuple[str, bytes]]]:
    """Paths of files, and names and contents of what can be read but is no file."""
    files: list[Any] = []
    texts: list[tuple[str, bytes]] = []
    for path in paths:
        if isinstance(path, (list, tuple)):
            more = _sources(tuple(path))
            files += more[0]
            texts += more[1]
        elif isinstance(path, (str, os.PathLike)):
            files.append(path)
        elif hasattr(path, "read_bytes"):
            with told_of(str(path), "read"):
                texts.append((str(path), path.read_bytes()))
        else:
            raise ArgumentError(
                "a store is a str, an os.PathLike, what importlib.resources.files() gives, or a "
                f"list of these, got {type(path).__name__}"
            )
    return files, texts


class Store:
    """Results of tuning in files of JSON lines.

    After the example of kw.tune.Session:

    >>> store = kw.tune.Store("tuned.jsonl")
    >>> len(store), store.problems
    (1, [])

    Several processes may append to one file while others read it; files merge with ``cat``. Lines
    that are damaged or of another version are skipped with a warning and never changed. Reading
    needs no right to write. A missing file counts as empty and may come later. A folder, or an
    unreadable file, raises StoreError. Changed files are read again. Thread-safe.
    """

    def __init__(self, *paths: Any) -> None:
        files, texts = _sources(paths)
        if not files and not texts:
            raise ArgumentError("Store(path, ...) wants at least one path")
        self.paths = tuple(os.fspath(path) for path in files)
        self._files = [_core.TuneStoreFile(path) for path in files]
        self._core = _core.TuneStore(files)
        self._texts = texts
        for name, text in texts:
            self._core.add(name, text)

    @property
    def results(self) -> list[Row]:
        """The result rows, in the order of files and lines."""
        return [json.loads(text) for text in self._core.results()]

    @property
    def problems(self) -> list[str]:
        """Skipped lines, unusable trials and missing files, as "PATH: line 3 is cut short". Reads
        the whole files."""
        return list(self._core.problems())

    def rows(self, kind: str = "", session: str = "") -> list[Row]:
        """The rows of one kind in the files ("session", "trial", "result"), of that session."""
        found: list[Row] = []
        for file in self._files:
            found += [json.loads(text) for text in file.read(kind, session)]
        for _, text in self._texts:
            found += [json.loads(row) for row in _core._tune_rows(text, kind, session)]
        return found

    def append(self, *rows: Mapping[str, Any]) -> None:
        """Adds rows and returns when they are on the disk; "v" is added.

        The store must be one file, new or with rows in it. InvalidArgument for another one, and for
        a row without "kind" or "session",
        StoreError when the file cannot be written; the same rows may be appended again then.
        """
        self.own_path()
        # Half of a surrogate pair, as in the name of a file, is no text of a JSON file.
        texts = [json.dumps(dict(row), ensure_ascii=False) for row in rows]
        self._files[0].append([text.encode("utf-8", "replace") for text in texts])

    def own_path(self) -> str:
        """The file that rows are appended to, wherever the process goes later. InvalidArgument for
        a store of several, and for a file of another program."""
        if len(self._files) != 1 or self._texts:
            raise InvalidArgument("rows are appended to a store of one file")
        self._files[0].require_store()
        return os.path.abspath(os.fsdecode(self.paths[0]))

    def find(self, key: Mapping[str, Any]) -> list[Match]:
        """The results of key["kernel"], nearest first; exact hits before all others.

        `key` has members as kernel_key() gives them; those that it lacks stand for any. All
        members that it has decide whether a hit is exact; a problem value does by its bucket, the
        power of two below it.
        """
        return [
            Match(json.loads(row), path, tuple(differences), distance)
            for row, path, differences, distance in self._core.find(json.dumps(dict(key)))
        ]

    def __len__(self) -> int:
        return len(self._core.results())

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        names = [*self.paths, *(name for name, _ in self._texts)]
        return f"Store({', '.join(map(repr, names))})"

    def __reduce__(self) -> tuple[Any, ...]:
        if self._texts:
            raise InvalidArgument("a store of rows that are in no file cannot be pickled")
        return Store, self.paths


def as_store(store: Any) -> Store:
    """`store`, or one made of its path or paths."""
    return store if isinstance(store, Store) else Store(store)


def space_hash(space: Any) -> str:
    """The hash of a Space in keys: parameters, values, restrictions. That of a function depends on
    its code and on the values in its closure."""
    import hashlib

    parts = [_core._tune_space_hash(space._core)]
    for kind, what in space._requirements:
        if kind == "restriction" and not isinstance(what, str):
            parts.append(_fingerprint(what[0] if isinstance(what, tuple) else what))
    if len(parts) == 1:
        return parts[0]
    return hashlib.sha256("\n".join(parts).encode("utf-8", "replace")).hexdigest()[:32]


def _fingerprint(function: Any) -> str:
    code = getattr(function, "__code__", None)
    if code is None:
        return repr(type(function))
    constants = [c.co_code.hex() if hasattr(c, "co_code") else repr(c) for c in code.co_consts]
    cells = [repr(cell.cell_contents) for cell in getattr(function, "__closure__", None) or ()]
    defaults = repr(getattr(function, "__defaults__", None))
    return "|".join([code.co_code.hex(), *constants, *code.co_names, defaults, *cells])


def source_hash(kernel: _core.Kernel, parameters: Iterable[str]) -> str:
    """The hash of all causes of the kernel's code but the machine and the defines `parameters`.
    Empty where it is unknown."""
    if kernel._program is None:
        raise InvalidArgument(f"{kernel!r} is object code: there is no source to tune")
    return _core._tune_source_hash(kernel._program, list(parameters))


def kernel_key(
    kernel: _core.Kernel,
    parameters: Iterable[str],
    *,
    problem: Mapping[str, Any] | None = None,
    space: Any = None,
    device: Any = None,
    policy: str = "",
    objective: str = "time",
    nvrtc: str = "",
) -> Row:
    """The key of a kernel with the tuned defines `parameters`, for the current device or
    `device`: members of a result row, as Store.find() takes them. Empty texts stand for any."""
    facts = _core._tune_device_class(device)
    driver = facts.pop("driver")
    values = mapping(problem, "problem=")
    return {
        "kernel": kernel.name,
        "source": source_hash(kernel, parameters),
        "space": "" if space is None else space_hash(space),
        "device": facts,
        "nvrtc": nvrtc,
        "driver": driver,
        "policy": policy,
        "objective": objective,
        "problem": {name: plain(value, f"problem value {name}") for name, value in values.items()},
    }
