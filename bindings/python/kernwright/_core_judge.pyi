"""The judge in the extension module; the public one is `kernwright.judge`."""

from kernwright._jit.options import ProgramOptions
from kernwright._judging.task import Functions

class _DrawnCases:
    @property
    def bytes(self) -> int: ...

class _Judge:
    def __init__(self, workers: int, device: str) -> None:
        """`device`: as KERNWRIGHT_DEVICE; "" for its value."""
    def judge(
        self,
        source: tuple[str, str],
        functions: Functions,
        options: ProgramOptions,
        baseline: tuple[str, str] | None,
        checks: list[str],
        timeout: float,
        seed: int,
    ) -> str:
        """Texts come with their names. A verdict as JSON."""
    def profile(
        self,
        source: tuple[str, str],
        functions: Functions,
        options: ProgramOptions,
        case: int,
        timeout: float,
        seed: int,
    ) -> str:
        """A line profile as JSON."""
    @property
    def workers(self) -> int: ...
    @property
    def losses(self) -> int: ...
