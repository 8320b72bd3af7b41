"""Phi-3 and Phi-4. Abdin et al., "Phi-3 technical report", 2024; "Phi-4 technical report", 2024."""

from __future__ import annotations

from typing import ClassVar

from kernwright.llm import _names
from kernwright.llm.models.llama import Llama

__all__ = ["Phi3"]


class Phi3(Llama):
    """Llama whose files hold queries, keys and values, and both halves of the gated layer, as one
    tensor each."""

    names: ClassVar[_names.Names] = _names.PHI3
