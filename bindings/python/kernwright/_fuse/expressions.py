"""Values of the graph as lines of device code, each computed once in its scope."""

from __future__ import annotations

from typing import Any, NamedTuple

from kernwright._fuse import types
from kernwright._fuse.graph import Node
from kernwright._fuse.layout import Operand
from kernwright._fuse.operations import OPERATIONS
from kernwright._fuse.schedule import Mapping, Step, operand_mapping, reduced_mapping


class Reduction(NamedTuple):
    """One accumulator: its type, its neutral value, how two combine, the value of each element."""

    name: str
    type: str
    none: str
    combine: str
    node: Node
    inner: Mapping


class Writer:
    """Writes the values of one step: those of a row before, those of elements in loops."""

    def __init__(self, step: Step, scalars: dict[int, str]) -> None:
        self.step = step
        self.scalars = scalars
        self.operands: dict[tuple[int, Mapping], Operand] = {}
        self.row: dict[tuple[int, Mapping], str] = {}
        self.row_lines: list[str] = []
        self.used_scalars: set[int] = set()
        self._count = 0
        self._varies: dict[tuple[int, Mapping], bool] = {}
        self._level: dict[tuple[int, Mapping], int] = {}
        self.reductions: dict[tuple[int, Mapping], Reduction] = {}

    # ---- what depends on what

    def children(self, node: Node, mapping: Mapping) -> list[tuple[Node, Mapping]]:
        return [(a, operand_mapping(node, mapping, a)) for a in node.args]

    def place(self, node: Node) -> Node:
        """The leaf for a reduction stored by an earlier kernel."""
        return self.step.places.get(node.number, node) if node.op == "reduce" else node

    def inner(self, node: Node, mapping: Mapping) -> Mapping | None:
        return reduced_mapping(node, mapping, self.step.space, self.step.axes)

    def fused_reduction(self, node: Node, mapping: Mapping) -> bool:
        return node.op == "reduce" and self.place(node) is node

    def leaves(self, node: Node, mapping: Mapping, seen: Any = None) -> list[tuple[Node, Mapping]]:
        """All array views below, through reductions too."""
        seen = {} if seen is None else seen
        key = (node.number, mapping)
        if key in seen:
            return []
        seen[key] = True
        node = self.place(node)
        if node.op in ("leaf", "raw"):
            return [(node, mapping)]
        if node.op == "reduce":
            inner = self.inner(node, mapping)
            assert inner is not None
            return self.leaves(node.args[0], inner, seen)
        return [leaf for a, m in self.children(node, mapping) for leaf in self.leaves(a, m, seen)]

    def varies(self, node: Node, mapping: Mapping) -> bool:
        """Whether the value differs between the elements of a row."""
        key = (node.number, mapping)
        if key not in self._varies:
            placed = self.place(node)
            if placed.op == "leaf":
                operand = self.operands[(placed.number, mapping)]
                self._varies[key] = operand.varies(self.element_dims)
            elif placed.op in ("reduce", "raw", "place"):
                self._varies[key] = placed.op == "place"
            else:
                below = self.children(node, mapping)
                self._varies[key] = any(self.varies(a, m) for a, m in below)
        return self._varies[key]

    element_dims = range(0)

    def level(self, node: Node, mapping: Mapping) -> int:
        """After how many loops over the row the value can be computed."""
        key = (node.number, mapping)
        if key not in self._level:
            placed = self.place(node)
            if placed.op == "reduce":
                inner = self.inner(node, mapping)
                assert inner is not None
                self._level[key] = 1 + self.level(node.args[0], inner)
            else:
                below = [] if placed.op == "leaf" else self.children(node, mapping)
                self._level[key] = max((self.level(a, m) for a, m in below), default=0)
        return self._level[key]

    def find_reductions(self, node: Node, mapping: Mapping, seen: set[Any]) -> None:
        """Fills `reductions` with those of the value."""
        key = (node.number, mapping)
        if key in seen:
            return
        seen.add(key)
        placed = self.place(node)
        if placed.op == "reduce":
            inner = self.inner(node, mapping)
            assert inner is not None
            self.find_reductions(node.args[0], inner, seen)
            if key not in self.reductions:
                self.reductions[key] = self._reduction(node, inner)
        elif placed.op != "leaf":
            for a, m in self.children(node, mapping):
                self.find_reductions(a, m, seen)

    def _reduction(self, node: Node, inner: Mapping) -> Reduction:
        kind = node.info[0]
        if isinstance(kind, tuple):
            return self._own_reduction(node, inner, *kind)
        name = f"{kind}_{len(self.reductions)}"
        if kind in ("any", "all"):
            none, combine = ("0", "Any()") if kind == "any" else ("1", "All()")
            return Reduction(name, "int", none, combine, node, inner)
        if kind in ("sum", "mean", "prod"):
            none = types.literal(1 if kind == "prod" else 0, node.dtype)
            combine = "Product()" if kind == "prod" else "Sum()"
            return Reduction(name, types.compute_type(node.dtype), none, combine, node, inner)
        held = node.args[0].held
        best = "Maximum" if kind.endswith("max") else "Minimum"
        wide = types.compute_type(held)
        wide = "int" if wide in ("bool", "Int8", "Int16", "UInt8", "UInt16") else wide
        if kind.startswith("arg"):
            return Reduction(
                name, f"Placed<{wide}>", "{0, -1}", f"BestPlace<{best}>()", node, inner
            )
        limit = types.lowest(held) if kind == "max" else types.highest(held)
        none = types.literal(limit, held)
        return Reduction(name, wide, none, f"{best}()", node, inner)

    def _own_reduction(self, node: Node, inner: Mapping, combine: str, none: Any) -> Reduction:
        name = f"reduced_{len(self.reductions)}"
        wide = types.compute_type(node.dtype)
        if none is not None:
            return Reduction(name, wide, f"{wide}({none})", f"{combine}()", node, inner)
        maybe = f"Maybe<{wide}>"
        return Reduction(name, maybe, "{0, 0}", f"CombinePresent<{combine}>()", node, inner)

    # ---- text

    def value(self, node: Node, mapping: Mapping, scope: Scope) -> str:
        """An atom with the value, of the type of its dtype's arithmetic."""
        node = self.place(node)
        if node.op == "const":
            return types.literal(node.info, node.held)
        if node.op == "scalar":
            self.used_scalars.add(node.info)
            return self.scalars[node.info]
        if node.op in ("raw", "place"):
            if node.op == "place":
                return f"static_cast<Int64>({scope.place})"
            return self.operands[(node.number, mapping)].name
        varies = self.varies(node, mapping)
        known, lines = (scope.known, scope.lines) if varies else (self.row, self.row_lines)
        key = (node.number, mapping)
        if key in known:
            return known[key]
        if node.op == "leaf":
            text = self._leaf(node, mapping, scope, varies)
        elif node.op == "reduce":
            text = self._finished(self.reductions[key])
        elif node.op == "cast":
            source = self.value(node.args[0], operand_mapping(node, mapping, node.args[0]), scope)
            text = f"convert<{types.element_type(node.dtype)}>({source})"
        elif node.op == "call":
            atoms = [self.value(a, m, scope) for a, m in self.children(node, mapping)]
            text = f"{node.info}({', '.join(atoms)})"
        else:
            text = self._apply(node, mapping, scope)
        name = f"t{self._count}"
        self._count += 1
        lines.append(f"const {types.compute_type(node.held)} {name} = {text};")
        known[key] = name
        return name

    def _leaf(self, node: Node, mapping: Mapping, scope: Scope, varies: bool) -> str:
        operand = self.operands[(node.number, mapping)]
        if varies:
            scope.read.add((node.number, mapping))
            return str(scope.element(operand))
        return f"to_compute({operand.name}[0])"

    def _finished(self, reduction: Reduction) -> str:
        kind, node = reduction.node.info[0], reduction.node
        if isinstance(kind, tuple):
            return f"{reduction.name}.value" if kind[1] is None else reduction.name
        if kind == "mean":
            return f"{reduction.name} / static_cast<{reduction.type}>(length)"
        if kind in ("any", "all"):
            return f"{reduction.name} != 0"
        if kind.startswith("arg"):
            return f"{reduction.name}.place"
        wide = types.compute_type(node.dtype)
        return reduction.name if wide == reduction.type else f"{wide}({reduction.name})"

    def accumulated(self, reduction: Reduction, scope: Scope) -> str:
        """The part of one element in an accumulator."""
        operand = reduction.node.args[0]
        atom = self.value(operand, reduction.inner, scope)
        kind = reduction.node.info[0]
        if isinstance(kind, tuple):
            return f"{reduction.type}{{{atom}, 1}}" if kind[1] is None else atom
        if kind in ("any", "all"):
            return self._converted(atom, operand, "bool", None)
        if kind.startswith("arg"):
            wide = reduction.type[len("Placed<") : -1]
            value = self._converted(atom, operand, wide, None)
            return f"{reduction.type}{{{value}, static_cast<Int64>({scope.place})}}"
        if kind in ("max", "min"):
            return self._converted(atom, operand, reduction.type, None)
        return self._converted(atom, operand, reduction.type, reduction.node.dtype)

    def _apply(self, node: Node, mapping: Mapping, scope: Scope) -> str:
        name, loop = node.info
        operation = OPERATIONS[name]
        wide = types.compute_type(np_dtype(loop))
        atoms = []
        for i, (a, m) in enumerate(self.children(node, mapping)):
            atom = self.value(a, m, scope)
            if name == "where" and i == 0:
                atoms.append(self._converted(atom, a, "bool", None))
            else:
                atoms.append(self._converted(atom, a, wide, np_dtype(loop)))
        return operation.code[types.kind_of(np_dtype(loop))].format(*atoms)

    @staticmethod
    def _converted(atom: str, node: Node, wide: str, dtype: Any) -> str:
        own = types.compute_type(node.held)
        if own == wide:
            return atom
        if node.op == "const" and dtype is not None:
            return types.literal(node.info, dtype)
        return f"({atom} != 0)" if wide == "bool" else f"{wide}({atom})"


class Scope:
    """The body of one loop over elements."""

    def __init__(self, element: Any, place: str = "") -> None:
        self.place = place
        self.known: dict[tuple[int, Mapping], str] = {}
        self.lines: list[str] = []
        self.read: set[tuple[int, Mapping]] = set()
        self.element = element


def np_dtype(name: str) -> Any:
    return types.as_dtype(name)
