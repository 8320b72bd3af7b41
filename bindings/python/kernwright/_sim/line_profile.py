"""line_profile(): the cost of each line of the kernels on the simulated device, in exact counts."""

from __future__ import annotations

import dataclasses
import json
import pathlib

from kernwright import _core
from kernwright._sim import line_page as _page
from kernwright._sim import watch as _watch
from kernwright._support.files import told_of
from kernwright._support.words import counted
from kernwright.errors import ArgumentError


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


@dataclasses.dataclass(frozen=True)
class Counts:
    """Sums over all warps. A request is one memory instruction of one warp.

    `instructions` are PTX instructions that warps executed, `thread_instructions` the same by
    threads; `predicated_off` counts threads that a guard kept from one. `divergent_branches` are
    `branches` at which a warp's lanes parted. Sectors have 32 bytes and lines 128, counted for each
    request on its own; `global_ideal_sectors` are those that the different bytes of the requests
    would fill. `shared_wavefronts` are passes over the 32 banks of 4 bytes. `atomic_passes` is the
    number of threads at the most contended address, summed over the requests. `uncounted`:
    instructions that move memory by no request of the warp, `uncounted_bytes` the bytes of global
    memory that they move at most. Ratios are None where there is nothing to divide.
    """

    instructions: int = 0
    thread_instructions: int = 0
    predicated_off: int = 0
    branches: int = 0
    divergent_branches: int = 0
    global_loads: int = 0
    global_stores: int = 0
    global_bytes: int = 0
    global_sectors: int = 0
    global_ideal_sectors: int = 0
    global_lines: int = 0
    shared_loads: int = 0
    shared_stores: int = 0
    shared_wavefronts: int = 0
    shared_ideal_wavefronts: int = 0
    local_loads: int = 0
    local_stores: int = 0
    local_bytes: int = 0
    local_sectors: int = 0
    atomics: int = 0
    atomic_threads: int = 0
    atomic_passes: int = 0
    uncounted: int = 0
    uncounted_bytes: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(*map(sum, zip(self.values(), other.values(), strict=True)))

    def values(self) -> tuple[int, ...]:
        """The counts in the order of the fields."""
        return tuple(getattr(self, field.name) for field in dataclasses.fields(Counts))

    @property
    def active_threads(self) -> float | None:
        """Active threads of a warp at an instruction, on average; 32 at best."""
        return _ratio(self.thread_instructions, self.instructions)

    @property
    def branch_efficiency(self) -> float | None:
        """The share of branches with all lanes together."""
        return _ratio(self.branches - self.divergent_branches, self.branches)

    @property
    def sectors_per_request(self) -> float | None:
        """Of global loads and stores; 4 for words of 4 bytes side by side."""
        return _ratio(self.global_sectors, self.global_loads + self.global_stores)

    @property
    def coalescing(self) -> float | None:
        """Ideal sectors of global loads and stores, of the actual ones; 1 at best."""
        return _ratio(self.global_ideal_sectors, self.global_sectors)

    @property
    def bank_conflicts(self) -> int:
        """Wavefronts of shared memory beyond the ideal ones."""
        return self.shared_wavefronts - self.shared_ideal_wavefronts

    @property
    def atomic_conflicts(self) -> int:
        """Passes of atomic operations beyond one for each request."""
        return self.atomic_passes - self.atomics

    @property
    def cost(self) -> int:
        """A weighted sum of `instructions`, `shared_wavefronts`, `atomic_passes`, `global_sectors`
        and `local_sectors`, in quarters of a cycle of a multiprocessor."""
        return _core._line_cost(self.values())

    @property
    def advice(self) -> str:
        """The largest cost in these counts, and a remedy; empty without instructions."""
        return _core._line_advice(self.values())


@dataclasses.dataclass(frozen=True)
class Line:
    """The counts of one source line in the launches of one kernel (its lowered name).

    `line` counts the kernel's text from 1, `file_line` the file that holds the text; 0 for code
    without a line. `source` is the text of the line, empty where it cannot be read.
    """

    kernel: str
    file: str
    line: int
    file_line: int
    source: str
    counts: Counts


class LineProfile(_watch.Watch[_core._LineProfile]):
    """Counts of launches by source line; made by line_profile(), complete when its block ended.

    print() shows a table: the line with the highest cost first.
    """

    def __init__(self, kernels: tuple[_core.Kernel, ...]) -> None:
        super().__init__(_core._LineProfile(list(kernels)), "a line profile")
        self._known = [text for kernel in kernels for text in _watch.texts_of(kernel) if text[0]]
        self._texts = _watch.Lines(self._known)

    @property
    def launches(self) -> dict[str, int]:
        """How often each kernel was launched, by lowered name."""
        return dict(json.loads(self._made.json())["launches"])

    def _records(self) -> list[tuple[Line, int]]:
        """The lines, each with the line of its file where its text begins."""
        found = []
        for data in json.loads(self._made.json())["lines"]:
            line, first = data["line"], data["first_line"]
            source = self._texts.find(data["file"], line, first)
            place = line and line + first - 1
            counts = Counts(**data["counts"])
            found.append((Line(data["kernel"], data["file"], line, place, source, counts), first))
        return found

    @property
    def lines(self) -> list[Line]:
        """A record for each executed line, by kernel, file and line."""
        return [line for line, _ in self._records()]

    @property
    def total(self) -> Counts:
        """The sum over all lines."""
        return sum((line.counts for line in self.lines), Counts())

    def to_text(self) -> str:
        """The table of print(), the line with the highest cost first, and advice about some."""
        return self._made.text(self._known)

    def __str__(self) -> str:
        return self.to_text()

    def to_json(self) -> str:
        """An object with `launches` and `lines`, which have the fields of Line and of Counts."""
        lines = [dataclasses.asdict(line) for line in self.lines]
        return json.dumps({"launches": self.launches, "lines": lines}, indent=2)

    def annotated(self) -> str:
        """The source, each line with its counts in front, as text."""
        columns, _, listings = self._tables()
        header = "".join(f"{name:>10}" for name, _ in columns)
        parts = []
        for title, rows in listings:
            parts.append(f"{title}\n{header}  line  source\n")
            parts += [
                f"{''.join(f'{cell:>10}' for cell in row.cells)}{row.number:6}  {row.source}\n"
                for row in rows
            ]
        return "".join(parts) or "no launches\n"

    def to_html(self) -> str:
        """A page of the annotated source: the higher the cost of a line, the darker, with advice
        beside the worst. What no line did has no column."""
        return _page.page(self._title(), *self._tables())

    def _repr_html_(self) -> str:
        return _page.box(self._title(), *self._tables())

    def _title(self) -> str:
        launched = ", ".join(
            f"{_core._readable_name(name)} ({counted(count, 'launch', 'launches')})"
            for name, count in self.launches.items()
        )
        return f"Line profile of {launched}" if launched else "Line profile: no launches"

    def _tables(self) -> tuple[list[_page.Column], str, list[tuple[str, list[_page.Row]]]]:
        """The columns with values, a note of what is in none, and the rows of _listings()."""
        listings = self._listings()
        counted = [counts.values() for _, rows in listings for *_, counts in rows if counts]
        columns, note, *values = _core._line_table(counted, self.total.values())
        told = zip(*values, strict=True)
        nothing = ([""] * len(columns), 0.0, "")
        tables = [
            (
                title,
                [
                    _page.Row(number, text, *(next(told) if counts else nothing))
                    for number, text, counts in rows
                ],
            )
            for title, rows in listings
        ]
        return columns, note, tables

    def _listings(self) -> list[tuple[str, list[tuple[int, str, Counts | None]]]]:
        """For each text: its title, and its lines with number in the file, text and counts."""
        texts: dict[tuple[str, int], dict[int, Counts]] = {}
        for record, first in self._records():
            if record.line:
                counts = texts.setdefault((record.file, first), {})
                counts[record.line] = counts.get(record.line, Counts()) + record.counts
        listings = []
        for (file, first), counts in sorted(texts.items()):
            whole = self._texts.text(file, first)
            low, high = min(counts), max(counts)
            if (file, first) in {(name, begin) for name, _, begin in self._known}:
                low, high = 1, len(whole)
            rows = [
                (n + first - 1, whole[n - 1] if n <= len(whole) else "", counts.get(n))
                for n in range(low, high + 1)
            ]
            listings.append((file, rows))
        return listings

    def save(self, path: str | pathlib.Path) -> None:
        """Writes the profile as the suffix says: .json, .html, .txt (the table), else annotated."""
        path = pathlib.Path(_core._path(path, "save()"))
        forms = {".json": self.to_json, ".html": self.to_html, ".txt": self.to_text}
        text = forms.get(path.suffix, self.annotated)()
        with told_of(path, "written"):
            path.write_text(text, encoding="utf-8")

    def __repr__(self) -> str:
        return f"<LineProfile of {sum(self.launches.values())} launches>"


def line_profile(*kernels: _core.Kernel) -> LineProfile:
    """Counts what each source line does: ``with kw.line_profile() as p: k[grid, block](...)``, then
    ``print(p)``, ``p.lines``, ``p.annotated()``, ``p.save("p.html")``.

    Of launches of `kernels`, or of all when none is named: instructions of warps and of threads,
    divergence, sectors and lines of global memory beside the ideal, bank conflicts of shared
    memory, atomics at one address, local memory. Counts are those of the PTX, exact, and the same
    for any number of host threads; nothing is said of times. Launches of all threads count; one
    line profile at a time in a process. Needs the simulated device: InvalidArgument on a GPU.

    >>> x = kw.zeros(64)
    >>> fill = kw.kernel("__global__ void fill(float* x) { x[threadIdx.x] = 1; }")
    >>> with kw.line_profile(fill) as profile:
    ...     fill[1, 64](x)
    >>> profile.total.global_stores, profile.total.coalescing
    (2, 1.0)
    """
    for kernel in kernels:
        if not isinstance(kernel, _core.Kernel):
            raise ArgumentError(f"line_profile() takes kernels, got {type(kernel).__name__}")
    return LineProfile(kernels)
