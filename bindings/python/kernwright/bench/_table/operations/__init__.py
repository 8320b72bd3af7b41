"""All operations of the table, in the order in which it shows them."""

from __future__ import annotations

from kernwright.bench._table.operations import (
    chains,
    chance,
    elementwise,
    losses,
    movement,
    norms,
    ordering,
    products,
    reductions,
)
from kernwright.bench._table.work import Operation

__all__ = ["OPERATIONS"]

OPERATIONS: tuple[Operation, ...] = (
    *elementwise.OPERATIONS,
    *reductions.OPERATIONS,
    *norms.OPERATIONS,
    *losses.OPERATIONS,
    *movement.OPERATIONS,
    *ordering.OPERATIONS,
    *chance.OPERATIONS,
    *chains.OPERATIONS,
    *products.OPERATIONS,
)
