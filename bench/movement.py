"""Bandwidth of movement: transposes, joining, rows taken and scattered, beside torch, CuPy, a copy.

Gigabytes per second count what is read and what is written once each; the copy of as many bytes is
the ceiling. On the simulated device small sizes run, which tells that everything runs.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import harness
import kernwright as kw

Subjects = dict[str, Callable[[], Any]]
DTYPES = ("uint8", "float16", "float32", "float64")


class Cases:
    """Functions under a name, with the bytes that one call moves."""

    def __init__(self, megabytes: int) -> None:
        self.megabytes = megabytes
        self.subjects: dict[str, Subjects] = {}
        self.bytes: dict[str, int] = {}
        self.missing: dict[str, str] = {}
        self.peers = {name: peer for name in ("torch", "cupy") if (peer := self.peer(name))}

    def peer(self, name: str) -> Any:
        try:
            if kw.current_device().is_simulated:
                raise RuntimeError("the simulated device has no peers")
            return __import__(name)
        except Exception as error:  # a peer that is absent or broken is named, not hidden
            self.missing[name] = repr(error)
            return None

    def add(self, name: str, moved: int, mine: Callable[[], Any], **peers: Any) -> None:
        """`peers`: for each peer, a function of its module that makes the call."""
        self.subjects[name] = {"kernwright": mine}
        self.bytes[name] = moved
        for peer, make in peers.items():
            if peer not in self.peers:
                continue
            try:
                call = make(self.peers[peer])
                call()
            except Exception as error:
                self.missing[f"{peer}: {name}"] = repr(error)
            else:
                self.subjects[name][peer] = call

    def settle(self) -> None:
        kw.synchronize()
        if "torch" in self.peers:
            self.peers["torch"].cuda.synchronize()

    def side(self, dtype: str) -> int:
        """Of a square matrix of so many bytes: a multiple of 64."""
        return int((self.megabytes * 2**20 / np.dtype(dtype).itemsize) ** 0.5) // 64 * 64


def add_copy(cases: Cases) -> None:
    x = kw.zeros(cases.megabytes << 18)
    y = kw.zeros(cases.megabytes << 18)
    cases.add("copy", 2 * x.nbytes, lambda: y._assign(x))


def add_transposes(cases: Cases) -> None:
    for dtype in DTYPES:
        n = cases.side(dtype)
        for rows, columns, name in ((n, n, "2-D"), (n + 1, n - 1, "2-D odd")):
            x = kw.zeros((rows, columns), dtype)

            def of(peer: Any, shape: Any = (rows, columns), dtype: str = dtype) -> Any:
                zeros = peer.zeros(shape, dtype=getattr(peer, dtype), **on(peer))
                return lambda: zeros.T.copy() if hasattr(zeros, "get") else zeros.T.contiguous()

            cases.add(f"transpose {name} {dtype}", 2 * x.nbytes, x.T.copy, torch=of, cupy=of)
    n = cases.side("float32") // 64
    for order in ((0, 2, 1), (2, 1, 0), (1, 0, 2), (0, 3, 1, 2), (0, 2, 1, 3), (3, 2, 1, 0)):
        shape = (64, n, 64 * n) if len(order) == 3 else (16, n, 4 * n, 64)
        x = kw.zeros(shape).transpose(order)

        def permuted(peer: Any, shape: Any = shape, order: Any = order) -> Any:
            zeros = peer.zeros(shape, dtype=peer.float32, **on(peer))
            if hasattr(zeros, "get"):
                return zeros.transpose(order).copy
            return zeros.permute(order).contiguous

        cases.add(f"transpose {order} float32", 2 * x.nbytes, x.copy, torch=permuted, cupy=permuted)


def on(peer: Any) -> dict[str, str]:
    return {"device": "cuda"} if peer.__name__ == "torch" else {}


def add_concat(cases: Cases) -> None:
    n = cases.side("float32")
    for axis in (0, 1):
        parts = [kw.zeros((n // 4, n) if axis == 0 else (n, n // 4)) for _ in range(4)]

        def joined(peer: Any, shape: Any = parts[0].shape, axis: int = axis) -> Any:
            own = [peer.zeros(shape, dtype=peer.float32, **on(peer)) for _ in range(4)]
            return lambda: peer.concatenate(own, axis)

        cases.add(f"concat axis {axis}", 2 * 4 * parts[0].nbytes,
                  lambda parts=parts, axis=axis: kw.concat(parts, axis=axis),
                  torch=joined, cupy=joined)  # fmt: skip


def add_rows(cases: Cases) -> None:
    for width in (1, 64, 1024):
        rows = (cases.megabytes << 18) // width
        order = np.random.default_rng(width).permutation(rows)
        x, index = kw.zeros((rows, width)), kw.asarray(order)
        y = kw.zeros((rows, width))
        moved = 2 * x.nbytes + index.nbytes

        def pieces(peer: Any, rows: int = rows, width: int = width, order: Any = order) -> Any:
            zeros = peer.zeros((rows, width), dtype=peer.float32, **on(peer))
            return zeros, zeros + 0, peer.asarray(order, **on(peer))

        def taken(peer: Any, pieces: Any = pieces) -> Any:
            source, _, places = pieces(peer)
            return lambda: source[places]

        def written(peer: Any, pieces: Any = pieces) -> Any:
            source, target, places = pieces(peer)
            return lambda: target.__setitem__(places, source)

        def added(peer: Any, pieces: Any = pieces) -> Any:
            source, target, places = pieces(peer)
            if peer.__name__ == "cupy":
                return lambda: peer.add.at(target, places, source)
            return lambda: target.index_add_(0, places, source)

        cases.add(f"take rows of {width}", moved, lambda x=x, i=index: kw.take(x, i, axis=0),
                  torch=taken, cupy=taken)  # fmt: skip
        cases.add(f"scatter rows of {width}", moved,
                  lambda x=x, y=y, i=index: y.__setitem__(i, x), torch=written,
                  cupy=written)  # fmt: skip
        cases.add(f"scatter distinct rows of {width}", moved,
                  lambda x=x, y=y, i=index: kw.put(y, i, x, axis=0, unique_indices=True),
                  torch=written, cupy=written)  # fmt: skip
        cases.add(f"scatter-add rows of {width}", moved + x.nbytes,
                  lambda x=x, y=y, i=index: kw.put(y, i, x, axis=0, reduce="add"),
                  torch=added, cupy=added)  # fmt: skip


def timed(
    subjects: Subjects, settle: Callable[[], None], calls: int, rounds: int
) -> dict[str, dict[str, float]]:
    """Microseconds per call from an idle device to an idle device, the subjects in turn."""
    samples: dict[str, list[float]] = {name: [] for name in subjects}
    for call in subjects.values():
        call()
    for _ in range(rounds):
        for name, call in subjects.items():
            settle()
            start = time.perf_counter()
            for _ in range(calls):
                call()
            settle()
            samples[name].append((time.perf_counter() - start) / calls * 1e6)
    return {
        name: {"min": round(min(v), 2), "median": round(statistics.median(v), 2)}
        for name, v in samples.items()
    }


def main() -> None:
    options = harness.arguments(__doc__.splitlines()[0], "movement")
    device = kw.current_device()
    cases = Cases(1 if device.is_simulated else 512)
    for add in (add_copy, add_transposes, add_concat, add_rows):
        add(cases)
    calls, rounds = (1, 1) if device.is_simulated else (20, 7)
    results: dict[str, Any] = {}
    for name, subjects in cases.subjects.items():
        times = timed(subjects, cases.settle, calls, rounds)
        for row in times.values():
            row["GB/s"] = round(cases.bytes[name] / row["median"] / 1e3, 1)
        results[name] = times
        print(f"{name:32}", {peer: row["GB/s"] for peer, row in times.items()}, flush=True)
    document = {"machine": harness.machine(), "megabytes": cases.megabytes, "results": results,
                "missing": cases.missing}  # fmt: skip
    harness.write(options.output, document)


if __name__ == "__main__":
    main()
