"""Which rows the table has: operations, shapes and dtypes that are chosen."""

from __future__ import annotations

import dataclasses
import difflib
import math
from collections.abc import Sequence

import kernwright as kw
from kernwright.bench._table.operations import OPERATIONS
from kernwright.bench._table.work import Operation, Shape
from kernwright.errors import InvalidArgument, NameNotFound

_DTYPES = ("float64", "float32", "float16", "bfloat16", "uint8", "int32", "int64")
SIZES = (1 << 12, 1 << 30)  # elements, the least and the most


@dataclasses.dataclass(frozen=True)
class Planned:
    operation: Operation
    shape: Shape
    dtype: str
    layout: str = "contiguous"  # of layouts.LAYOUTS

    @property
    def axes(self) -> dict[str, str]:
        found = {"shape": "x".join(map(str, self.shape)), "dtype": self.dtype}
        return found if self.layout == "contiguous" else {**found, "layout": self.layout}


def chosen_operations(only: Sequence[str] | None) -> list[Operation]:
    """Those of a group, or with one of the texts in their name."""
    if only is None:
        return list(OPERATIONS)
    found: list[Operation] = []
    for text in only:
        fits = [o for o in OPERATIONS if text == o.group or text == o.name]
        fits = fits or [o for o in OPERATIONS if text in o.name]
        if not fits:
            groups = ", ".join(dict.fromkeys(o.group for o in OPERATIONS))
            near = difflib.get_close_matches(text, [o.name for o in OPERATIONS], n=1)
            hint = f" (did you mean {near[0]!r}?)" if near else ""
            raise NameNotFound(
                f"no operation has {text!r} in its name{hint}; groups: {groups}; "
                "kernwright bench --list shows the operations"
            )
        found += fits
    return [o for o in OPERATIONS if o in found]


def _check(sizes: Sequence[int] | None, dtypes: Sequence[str] | None) -> None:
    for size in sizes or ():
        if not isinstance(size, int) or not 1 <= size <= SIZES[1]:
            raise InvalidArgument(f"a size of {size!r}: a number of elements from 1 to 2^30")
    for dtype in dtypes or ():
        if dtype not in _DTYPES:
            raise InvalidArgument(f"dtype {dtype!r}: the table has {', '.join(_DTYPES)}")


def planned(
    only: Sequence[str] | None = None,
    sizes: Sequence[int] | None = None,
    dtypes: Sequence[str] | None = None,
    quick: bool = False,
    simulated: bool | None = None,
) -> list[Planned]:
    """All rows, in order. `quick`: one shape and dtype of each operation. The simulated device has
    small shapes of its own; `sizes` replace the shapes by ones of so many elements."""
    _check(sizes, dtypes)
    if simulated is None:
        simulated = kw.current_device().is_simulated
    rows: list[Planned] = []
    for operation in chosen_operations(only):
        if sizes is not None:
            shapes = [operation.of_size(n) for n in sizes]
        else:
            shapes = [operation.small] if simulated else list(operation.shapes)
        wanted = operation.dtypes if dtypes is None else dtypes
        taken = [dtype for dtype in wanted if dtype in operation.takes]
        if quick:
            middle = sorted(shapes, key=math.prod)[len(shapes) // 2 : len(shapes) // 2 + 1]
            shapes, taken = middle, taken[:1]
        rows += [Planned(operation, s, d) for s in dict.fromkeys(shapes) for d in taken]
    if not rows:
        raise InvalidArgument(f"no chosen operation takes {' or '.join(dtypes or ())}")
    return rows


def part_of(rows: Sequence[Planned], part: tuple[int, int]) -> list[Planned]:
    """Part i of n, from 1 on: operations in turns, so that parts take about equally long."""
    number, count = part
    if not 1 <= number <= count:
        raise InvalidArgument(f"part {number}/{count}: from 1/{count} to {count}/{count}")
    return list(rows[number - 1 :: count])
