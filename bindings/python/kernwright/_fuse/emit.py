"""The text of the kernel of one step, and all that its launch takes."""

from __future__ import annotations

import math
from collections.abc import Callable
from collections.abc import Mapping as Mapping_
from types import MappingProxyType
from typing import Any, NamedTuple

from kernwright._fuse import types
from kernwright._fuse.expressions import Scope, Writer
from kernwright._fuse.graph import Node
from kernwright._fuse.layout import Dims, Operand, coordinates, offset, run_length
from kernwright._fuse.schedule import Mapping, Step

BLOCK = 256


class Launch(NamedTuple):
    """One launch: what goes into the kernel's parameters, in their order."""

    text: str
    name: str
    grid: int
    block: int
    inputs: list[Any]
    outputs: list[Any]
    scalars: list[int]
    values: list[Any]  # the layout's bytes, counts
    scratch: Mapping_[Any, int] = MappingProxyType({})  # bytes between kernels


class Kernel:
    """A step's operands, dimensions and expressions; `write` makes its text."""

    def __init__(self, step: Step, name: str, names: list[str], scalars: dict[int, tuple[str, str]],
                 addresses: Callable[[Any], int], preamble: str = "") -> None:  # fmt: skip
        self.step, self.name, self.scalar_types, self.preamble = step, name, scalars, preamble
        self.writer = Writer(step, {i: text for i, (text, _) in scalars.items()})
        self._taken = {"V", "U", "at", "row", "rows", "lane", "length", "item", "items", "first",
                       "count", "width", "live", "end", "u", "v", "k", "j", "chunk", "part",
                       "parts", "using", "const", "float", "int", "double", "char",
                       *(text for text, _ in scalars.values())}  # fmt: skip
        self._addresses, self._names = addresses, names
        self.inputs = self._find_inputs()
        self.outputs = [self._output(s) for s in step.stored]
        self.operands = [*self.inputs, *self.outputs]
        self.dims = Dims(step.space, step.axes, self.operands)
        elements = range(self.dims.reduced) if step.axes else range(len(self.dims.extents))
        self.writer.element_dims = elements
        for stored in step.stored:
            self.writer.find_reductions(stored.node, stored.mapping, set())

    def _unique(self, name: str) -> str:
        base, number = name, 1
        while name in self._taken:
            name = f"{base}_{number}"
            number += 1
        self._taken.add(name)
        return name

    def _find_inputs(self) -> list[Operand]:
        seen: dict[Any, Any] = {}
        made: dict[Any, Operand] = {}
        for stored in self.step.stored:
            for leaf, mapping in self.writer.leaves(stored.node, stored.mapping, seen):
                array, start, strides = leaf.info
                along = self._along(leaf, mapping, strides)
                key = (array, start, tuple(along))
                if key not in made:
                    stem = self._names[array] if isinstance(array, int) else f"stored{array[1]}"
                    made[key] = Operand(self._unique(stem), leaf.dtype, along, array, start,
                                        self._addresses(array), False)  # fmt: skip
                self.writer.operands[(leaf.number, mapping)] = made[key]
        return list(made.values())

    def _along(self, leaf: Node, mapping: Mapping, strides: Any) -> list[int]:
        along = [0] * len(self.step.space)
        for axis, stride in zip(mapping, strides, strict=True):
            if axis is not None:
                along[axis] += stride
        return along

    def _output(self, stored: Any) -> Operand:
        node = stored.node
        along, step = [0] * len(self.step.space), 1
        for axis, extent in zip(reversed(stored.mapping), reversed(node.shape), strict=True):
            if axis is not None:
                along[axis] = step
            step *= extent
        dtype = node.held if stored.slot[0] == "out" else types.compute_dtype(node.held)
        stem = "out" if stored.slot[0] == "out" else "stored"
        return Operand(self._unique(stem), dtype, along, stored.slot, 0, 0, True)

    # ---- text

    def signature(
        self, block: int, index: str, counts: list[str], name: str = "",
        reads: list[str] | None = None, writes: list[str] | None = None,
    ) -> str:  # fmt: skip
        """All in front of the body; `reads` and `writes` name what is no operand."""
        struct, self.layout = self.dims.struct(self.operands)
        read = [*(o.name for o in self.inputs), *(reads or [])]
        written = [o.name for o in self.outputs] if writes is None else writes
        inputs = [f"const void* __restrict__ {n}_memory" for n in read]
        outputs = [f"void* __restrict__ {n}_memory" for n in written]
        used = sorted(self.writer.used_scalars)
        scalars = [f"{self.scalar_types[i][1]} {self.scalar_types[i][0]}" for i in used]
        named = [f"const {index} {count}" for count in counts]
        parameters = [*inputs, *outputs, *scalars, "const Layout at", *named]
        return (
            "#include <kernwright/fused.cuh>\n\nusing namespace kernwright;\n\n"
            f"{self.preamble}// Extents and strides in elements, the innermost dimension first.\n"
            f"{struct}\n"
            f"__global__ void __launch_bounds__({block})\n{name or self.name}("
            + ",\n    ".join(parameters) + ") {\n"
        )  # fmt: skip

    def pointers(self, operands: list[Operand], at: dict[str, str]) -> list[str]:
        lines = []
        for o in operands:
            const = "" if o.is_output else "const "
            where = f" + at.{o.name}_start" if o.offset else ""
            where += f" + {at[o.name]}" if at.get(o.name) else ""
            lines.append(f"{const}{o.type}* const {o.name} = "
                         f"static_cast<{const}{o.type}*>({o.name}_memory){where};")  # fmt: skip
        return lines

    def finish(self, text: str, grid: int, block: int, counts: list[int]) -> Launch:
        return Launch(
            text, self.name, grid, block,
            [o.source for o in self.inputs],
            [o.source for o in self.outputs], sorted(self.writer.used_scalars),
            [self.layout, *counts],
        )  # fmt: skip

    def load(self, o: Operand, run: int, where: str, rest: str = "") -> str:
        """The elements of one run, `where` from the operand's first."""
        rest = f", {rest}" if rest else ""
        place = f"{o.name} + {where}" if where else o.name
        if o.dims and o.dims[0] == 1:
            return f"load<V, {o.pack}>({place}{rest})"
        stride = f"at.{o.name}[0]" if o.dims and o.dims[0] else "0"
        return f"load_strided<V>({place}, {stride}{rest})"

    def write_flat(self) -> Launch:
        """The launch of a kernel that reduces nothing; emit_rows.write_kernel() writes all."""
        extents = self.dims.extents or [1]
        varying = [o for o in self.inputs if any(o.dims)]
        outs = self.outputs
        run = (
            run_length([*varying, *outs], extents[0], len(extents) > 1) if self.dims.extents else 1
        )
        runs = [-(-extents[0] // run), *extents[1:]]
        items = math.prod(runs)
        moved = sum(o.size for o in varying) * run or 1
        unroll = max(1, min(4, 64 // moved)) if items > 4 * BLOCK * 132 else 1
        index = "UInt32" if items * run + 8 * BLOCK * run < 2**31 else "UInt64"
        scope = Scope(lambda o: f"{o.name}_run[u][v]")
        stores = []
        for stored, o in zip(self.step.stored, outs, strict=True):
            atom = self.writer.value(stored.node, stored.mapping, scope)
            stores.append(f"{o.name}_run.put(v, {atom});")
        split, places = coordinates(
            extents if self.dims.extents else [], 0, "i", "item", index, "V"
        )
        if not self.dims.extents:
            split, places = [], []
        checked = len(extents) == 1 and extents[0] % run
        rest = f"static_cast<long long>(at.extent[0]) - {places[0]}" if checked else ""
        text = self.signature(BLOCK, index, ["items"])
        body = [f"constexpr int V = {run}, U = {unroll};", *self.pointers(self.operands, {})]
        body += self.writer.row_lines
        body.append(
            f"const {index} first = blockIdx.x * static_cast<{index}>({BLOCK} * U) + threadIdx.x;"
        )
        read = [o for o in varying if o in {self.writer.operands[k] for k in scope.read}]
        loads = [
            f"{o.name}_run[u] = {self.load(o, run, offset(o, 0, places), rest)};" for o in read
        ]
        body += [f"Run<{o.type}, V> {o.name}_run[U];" for o in read]
        if loads:
            body += _loop(["if (item < items) {", *_deep([*split, *loads]), "}"], index)
        inner = ["if (item >= items) return;", *split]
        inner += [f"Run<{o.type}, V> {o.name}_run;" for o in outs]
        inner += [
            "#pragma unroll",
            "for (int v = 0; v < V; ++v) {",
            *_deep([*scope.lines, *stores]),
            "}",
        ]
        for o in outs:
            where = offset(o, 0, places)
            tail = f", {rest}" if rest else ""
            place = f"{o.name} + {where}" if where else o.name
            inner.append(f"store<{o.pack}>({place}, {o.name}_run{tail});")
        body += _loop(inner, index)
        text += "".join(f"  {line}\n" for line in body) + "}\n"
        return self.finish(text, -(-items // (BLOCK * unroll)), BLOCK, [items])


def _deep(lines: list[str]) -> list[str]:
    return [f"  {line}" for line in lines]


def _loop(lines: list[str], index: str) -> list[str]:
    head = ["#pragma unroll", "for (int u = 0; u < U; ++u) {"]
    item = f"  const {index} item = first + u * {BLOCK};"
    return [*head, item, *_deep(lines), "}"]
