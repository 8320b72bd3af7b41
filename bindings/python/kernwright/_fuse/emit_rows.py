"""Kernels that reduce: a group of threads a row, in registers where it is read twice."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from kernwright._fuse.emit import BLOCK, Kernel, Launch
from kernwright._fuse.expressions import Reduction, Scope
from kernwright._fuse.layout import Operand, coordinates, offset, run_length

# Bytes of a row that a thread keeps in registers.
KEPT_BYTES = 128
# Blocks that a device should have, and the elements that a block of a split row takes at least.
ENOUGH_BLOCKS = 264
LEAST_PART = 8192
MOST_PARTS = 1024


class Shape(NamedTuple):
    """How threads share the rows: `columns` are rows that are neighbours in memory."""

    block: int
    width: int
    columns: bool
    run: int
    kept: int  # runs of a row that a thread keeps, 0: the row is read again
    parts: int

    @property
    def rows(self) -> int:
        """Rows a block."""
        return 32 if self.columns else self.block // self.width


class RowKernel:
    """The text of one kernel; `part` says whether it stores accumulators of parts of rows."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel, self.writer, self.dims = kernel, kernel.writer, kernel.dims
        nr = self.dims.reduced
        self.length = math.prod(self.dims.extents[:nr])
        self.rows = math.prod(self.dims.extents[nr:])
        self.inner = self.dims.extents[:nr]
        self.outer = self.dims.extents[nr:]
        self.elements = range(nr)
        self.element_outputs = [
            (s, o) for s, o in zip(kernel.step.stored, kernel.outputs, strict=True)
            if o.varies(self.elements)
        ]  # fmt: skip
        self.row_outputs = [
            (s, o) for s, o in zip(kernel.step.stored, kernel.outputs, strict=True)
            if not o.varies(self.elements)
        ]  # fmt: skip
        self.phases = self._phases()
        self.shape = self._choose()
        # Operands that stay in registers: those that more than one loop reads.
        self._kept = self._find_kept() if self.shape.kept else []
        self._loaded: list[Operand] = []

    def _phases(self) -> list[list[Reduction]]:
        """The reductions by the loop that they belong to."""
        phases: dict[int, list[Reduction]] = {}
        for (_, _), reduction in self.writer.reductions.items():
            level = self.writer.level(reduction.node.args[0], reduction.inner)
            phases.setdefault(level, []).append(reduction)
        return [phases[level] for level in sorted(phases)]

    # ---- how

    def _choose(self) -> Shape:
        reads = [o for o in self.kernel.inputs if o.varies(self.elements)]
        columns = self._has_columns(reads)
        loops = len(self.phases) + bool(self.element_outputs)
        linear = [*reads, *(o for _, o in self.element_outputs)]
        run = 1
        if self.inner and not columns:
            run = run_length(linear, self.inner[0], True)
        # What all rows share comes from a cache, and does not make threads worth having.
        own = [o for o in reads if any(o.dims[self.dims.reduced :])] or reads
        bytes_of_run = max(sum(o.size for o in own) * run, 1)
        runs = -(-self.length // run)
        if columns:
            width, block = BLOCK // 32, BLOCK
        else:
            width = 1
            wanted = -(-runs * bytes_of_run // 64)
            while width < 1024 and width < wanted:
                width *= 2
            if width > 32 and self.rows >= 2 * ENOUGH_BLOCKS and loops == 1:
                width = min(width, 256)
            block = max(width, BLOCK) if width <= 32 else width
        kept = -(-runs // width) if loops > 1 else 0
        if kept * bytes_of_run > KEPT_BYTES:
            kept = 0
        parts = self._parts(width, columns) if loops == 1 and not self.element_outputs else 1
        return Shape(block, width, columns, run, kept, parts)

    def _has_columns(self, reads: list[Operand]) -> bool:
        if not self.outer or not self.inner or self.outer[0] < 16:
            return False
        nr = self.dims.reduced
        along = sum(o.size for o in reads if o.dims[nr] == 1)
        across = sum(o.size for o in reads if o.dims[0] == 1)
        return bool(along > across)

    def _parts(self, width: int, columns: bool) -> int:
        per_block = 32 if columns else max(1, BLOCK // width)
        blocks = -(-self.rows // per_block)
        least = LEAST_PART if not columns else LEAST_PART // 32
        if blocks >= ENOUGH_BLOCKS or self.length < 2 * least:
            return 1
        return min(-(-2 * ENOUGH_BLOCKS // blocks), self.length // least, MOST_PARTS)

    # ---- text

    def launches(self) -> list[Launch]:
        if self.shape.parts == 1:
            return [self._whole()]
        return self._split()

    def _index(self) -> str:
        most = max((self.length + 16 * 1024 * 16), self.rows * 2, self.rows * self.shape.parts * 2)
        return "UInt32" if most < 2**31 else "UInt64"

    def _whole(self) -> Launch:
        shape, index = self.shape, self._index()
        body: list[str] = []
        for phase in self.phases:
            body += self._loop(phase, index)
        body += self._last_loop(index)
        body += self._row_stores()
        text = self.kernel.signature(shape.block, index, ["rows", "length"])
        lines = [*self._head("row", "blockIdx.x"), "const Index end = live ? length : 0;"]
        lines = [line.replace("Index", index) for line in lines]
        lines += self._pointers(index, self.kernel.operands) + body
        text += "".join(f"  {line}\n" for line in lines) + "}\n"
        grid = -(-self.rows // shape.rows)
        return self.kernel.finish(text, grid, shape.block, [self.rows, self.length])

    def _head(self, name: str, block: str) -> list[str]:
        """Which row a thread belongs to, and which of the row's threads it is."""
        s = self.shape
        lines = [f"constexpr int V = {s.run}{self._width()};"]
        if s.columns:
            lines += [f"const Index {name} = static_cast<Index>({block}) * 32 + threadIdx.x % 32;",
                      "const Index lane = threadIdx.x / 32;"]  # fmt: skip
        elif s.width <= 32:
            lines += [f"const Index {name} = static_cast<Index>({block}) * {s.rows} + "
                      "threadIdx.x / width;",
                      "const Index lane = threadIdx.x % width;"]  # fmt: skip
        else:
            lines += [f"const Index {name} = {block};", "const Index lane = threadIdx.x;"]
        return [*lines, f"const bool live = {name} < rows;"]

    def _width(self) -> str:
        """The declaration of the number of a row's threads, where it is read."""
        is_read = self.shape.kept or (not self.shape.columns and self.shape.width <= 32)
        return f", width = {self.shape.width}" if is_read else ""

    def _pointers(self, index: str, operands: list[Operand]) -> list[str]:
        nr = self.dims.reduced
        lines: list[str] = []
        names: list[str] = []
        moving = [o for o in operands if any(o.dims[nr:])]
        if moving:
            lines.append(f"const {index} mine = live ? row : 0;")
            split, names = coordinates(self.outer, nr, "r", "mine", index)
            lines += split
        at = {o.name: offset(o, nr, names) for o in moving}
        return lines + self.kernel.pointers(operands, at)

    def _reduced(self, r: Reduction) -> str:
        s = self.shape
        if s.columns:
            return f"{r.name} = column_reduce<{s.block}>({r.name}, {r.combine});"
        if s.width <= 32:
            return f"{r.name} = warp_reduce<{s.width}>({r.name}, {r.combine});"
        none = f"{r.type}{r.none}" if r.none.startswith("{") else f"{r.type}({r.none})"
        return f"{r.name} = block_reduce<{s.block}>({r.name}, {r.combine}, {none});"

    def _element(self, o: Operand) -> str:
        return f"{o.name}_run[k][v]" if o in self._kept else f"{o.name}_run[v]"

    def _find_kept(self) -> list[Operand]:
        reading: dict[int, int] = {}
        loops = [[(r.node.args[0], r.inner) for r in phase] for phase in self.phases]
        loops.append([(s.node, s.mapping) for s, _ in self.element_outputs])
        for loop in loops:
            found = {id(o) for node, mapping in loop for o in self._direct(node, mapping)}
            for key in found:
                reading[key] = reading.get(key, 0) + 1
        return [o for o in self.kernel.inputs if reading.get(id(o), 0) > 1]

    def _direct(self, node: Any, mapping: Any, seen: Any = None) -> list[Operand]:
        """The operands that a value reads in a loop of its own."""
        seen = set() if seen is None else seen
        key = (node.number, mapping)
        if key in seen or not self.writer.varies(node, mapping):
            return []
        seen.add(key)
        node = self.writer.place(node)
        if node.op == "leaf":
            return [self.writer.operands[(node.number, mapping)]]
        below = self.writer.children(node, mapping)
        return [o for a, m in below for o in self._direct(a, m, seen)]

    def _loop(self, phase: list[Reduction], index: str) -> list[str]:
        scope = Scope(self._element, "j + v" if self.shape.run > 1 else "j")
        adds = []
        for r in phase:
            atom = self.writer.accumulated(r, scope)
            adds.append(f"{r.name} = {r.combine}({r.name}, {atom});")
        lines = [f"{r.type} {r.name} = {r.none};" for r in phase]
        lines += self._over_runs(scope, [*scope.lines, *adds], [], index)
        lines += [self._reduced(r) for r in phase]
        return self._row_lines() + lines

    def _last_loop(self, index: str) -> list[str]:
        if not self.element_outputs:
            return []
        scope = Scope(self._element)
        puts = []
        for stored, o in self.element_outputs:
            atom = self.writer.value(stored.node, stored.mapping, scope)
            puts.append(f"{o.name}_run.put(v, {atom});")
        after = []
        for _, o in self.element_outputs:
            if o.dims[0] == 1 and self.inner:
                after.append(f"store<{o.pack}>({o.name} + @{o.name}@, {o.name}_run);")
            else:
                step = f" + v * at.{o.name}[0]" if self.inner and o.dims[0] else ""
                after.append(f"for (int v = 0; v < {'V' if step else 1}; ++v) "
                             f"{o.name}[@{o.name}@{step}] = {o.name}_run.value[v];")  # fmt: skip
        lines = self._over_runs(scope, [*scope.lines, *puts], after, index)
        return self._row_lines() + lines

    def _row_lines(self) -> list[str]:
        lines = list(self.writer.row_lines)
        self.writer.row_lines.clear()
        return lines

    def _over_runs(self, scope: Scope, inner: list[str], after: list[str], index: str) -> list[str]:
        """A loop of the row's threads over its runs; kept operands are loaded before the first."""
        s = self.shape
        split, names = coordinates(self.inner, 0, "j", "j", index)
        read = {id(self.writer.operands[k]): self.writer.operands[k] for k in scope.read}
        reads = list(read.values())
        lines: list[str] = []
        fresh = [o for o in reads if o in self._kept and o not in self._loaded]
        step = "k * width + lane" if s.run == 1 else "(k * width + lane) * V"
        head = ["#pragma unroll", f"for (int k = 0; k < {s.kept}; ++k) {{",
                f"  const {index} j = {step};"]  # fmt: skip
        if fresh:
            lines += [f"Run<{o.type}, V> {o.name}_run[{s.kept}];" for o in fresh]
            loads = [f"{o.name}_run[k] = {self.kernel.load(o, s.run, offset(o, 0, names))};"
                     for o in fresh]  # fmt: skip
            lines += [
                *head,
                "  if (j < end) {",
                *(f"    {x}" for x in [*split, *loads]),
                "  }",
                "}",
            ]
            self._loaded += fresh
        body = list(split)
        for o in reads:
            if o not in self._kept:
                text = self.kernel.load(o, s.run, offset(o, 0, names))
                body.append(f"const Run<{o.type}, V> {o.name}_run = {text};")
        outputs = {o.name: o for _, o in self.element_outputs} if after else {}
        body += [f"Run<{o.type}, V> {o.name}_run;" for o in outputs.values()]
        body += ["#pragma unroll", "for (int v = 0; v < V; ++v) {", *(f"  {x}" for x in inner), "}"]
        for line in after:
            for name, o in outputs.items():
                line = line.replace(f"@{name}@", offset(o, 0, names) or "0")
            body.append(line)
        if s.kept:
            return [*lines, *head, "  if (j < end) {", *(f"    {x}" for x in body), "  }", "}"]
        jump = f"{s.width}" if s.run == 1 else f"{s.width} * V"
        begin = ("begin + " if s.parts > 1 else "") + ("lane" if s.run == 1 else "lane * V")
        head = ["#pragma unroll 4", f"for ({index} j = {begin}; j < end; j += {jump}) {{"]
        return [*lines, *head, *(f"  {x}" for x in body), "}"]

    def _row_stores(self) -> list[str]:
        scope = Scope(self._element)
        stores = []
        for stored, o in self.row_outputs:
            atom = self.writer.value(stored.node, stored.mapping, scope)
            stores.append(f"{o.name}[0] = from_compute<{o.type}>({atom});")
        lines = self._row_lines()
        if stores:
            lines += ["if (live && lane == 0) {", *(f"  {x}" for x in stores), "}"]
        return lines

    # ---- rows that take several blocks each: a kernel for their parts, one that combines them

    def _split(self) -> list[Launch]:
        return [self._part_kernel(), self._finish_kernel()]

    def _parts_of(self) -> list[Reduction]:
        return self.phases[0]

    def _part_kernel(self) -> Launch:
        s, index, kernel = self.shape, self._index(), self.kernel
        rows = -(-self.rows // s.rows)
        unit = s.run * 32
        chunk = -(-self.length // (s.parts * unit)) * unit
        body = self._loop(self._parts_of(), index)
        text = kernel.signature(
            s.block, index, ["rows", "length", "blocks", "chunk"], f"{kernel.name}_part",
            writes=[r.name for r in self._parts_of()],
        )  # fmt: skip
        lines = [
            f"constexpr int V = {s.run}{self._width()};",
            "const Index part = blockIdx.x / blocks, block = blockIdx.x % blocks;",
            *self._head("row", "block")[1:],
            "const Index begin = part * chunk;",
            "const Index stop = length < begin + chunk ? length : begin + chunk;",
            "const Index end = live ? stop : begin;",
        ]
        lines = [line.replace("Index", index) for line in lines]
        lines += self._pointers(index, kernel.inputs) + body + ["if (live && lane == 0) {"]
        for r in self._parts_of():
            memory = f"static_cast<{r.type}*>({r.name}_memory)"
            lines.append(f"  {memory}[static_cast<long long>(part) * rows + row] = {r.name};")
        text += "".join(f"  {line}\n" for line in [*lines, "}"]) + "}\n"
        launch = kernel.finish(text, rows * s.parts, s.block, [self.rows, self.length, rows, chunk])
        scratch = {self._key(r): self.rows * s.parts * size_of(r.type) for r in self._parts_of()}
        return launch._replace(
            name=f"{kernel.name}_part", scratch=scratch,
            outputs=[("temp", self._key(r)) for r in self._parts_of()],
        )  # fmt: skip

    def _key(self, r: Reduction) -> Any:
        return (self.kernel.step.stored[0].slot, r.name)

    def _finish_kernel(self) -> Launch:
        index, kernel, reductions = self._index(), self.kernel, self._parts_of()
        kernel.writer.row.clear()
        kernel.writer.used_scalars.clear()
        kernel.inputs = [o for o in kernel.inputs if not o.varies(self.elements)]
        kernel.operands = [*kernel.inputs, *kernel.outputs]
        lines = ["const Index row = static_cast<Index>(blockIdx.x) * 8 + threadIdx.x / 32;",
                 "const Index lane = threadIdx.x % 32;",
                 "const bool live = row < rows;",
                 "const Index end = live ? parts : 0;"]  # fmt: skip
        lines = [line.replace("Index", index) for line in lines]
        lines += self._pointers(index, kernel.operands)
        for r in reductions:
            lines.append(f"{r.type} {r.name} = {r.none};")
        lines.append(f"for ({index} part = lane; part < end; part += 32) {{")
        lines.append("  const long long at_part = static_cast<long long>(part) * rows + row;")
        for r in reductions:
            memory = f"static_cast<const {r.type}*>({r.name}_memory)"
            lines.append(f"  {r.name} = {r.combine}({r.name}, {memory}[at_part]);")
        lines.append("}")
        lines += [f"{r.name} = warp_reduce<32>({r.name}, {r.combine});" for r in reductions]
        lines += self._row_stores()
        names = [r.name for r in reductions]
        text = kernel.signature(
            BLOCK, index, ["rows", "length", "parts"], f"{kernel.name}_finish", reads=names
        )
        text += "".join(f"  {line}\n" for line in lines) + "}\n"
        counts = [self.rows, self.length, self.shape.parts]
        launch = kernel.finish(text, -(-self.rows // 8), BLOCK, counts)
        sources = [("temp", self._key(r)) for r in reductions]
        return launch._replace(name=f"{kernel.name}_finish", inputs=[*launch.inputs, *sources])


def size_of(accumulator: str) -> int:
    """Bytes of an accumulator's type."""
    wide = accumulator in ("Maybe<Int64>", "Maybe<UInt64>", "Maybe<double>")
    if wide or accumulator.startswith("Placed"):
        return 16
    return (
        8 if accumulator.startswith("Maybe") or accumulator in ("Int64", "UInt64", "double") else 4
    )


def write_kernel(kernel: Kernel) -> list[Launch]:
    """The launches of a kernel: two where parts of rows are reduced before the rows."""
    return RowKernel(kernel).launches() if kernel.step.axes else [kernel.write_flat()]
