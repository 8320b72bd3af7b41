"""NCUObserver: performance counters by the package nvmetrics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kernwright.tune._kernel_tuner.sensors import package, refuse_simulated
from kernwright.tune.observers import PrologueObserver

__all__ = ["NCUObserver"]


class NCUObserver(PrologueObserver):
    """Adds the counters `metrics`, named as by `ncu --query-metrics`, of one launch to each result.

    ArgumentError when the tuning begins and there is no package nvmetrics; InvalidArgument on the
    simulated device, which has no counters.
    """

    def __init__(self, metrics: Sequence[str], device: int = 0) -> None:
        self.metrics, self.device = list(metrics), device
        self._found: Sequence[float] = ()
        self._nvmetrics: Any = None

    def register_device(self, dev: Any) -> None:
        super().register_device(dev)
        refuse_simulated("NCUObserver", dev, "performance counters")
        self._nvmetrics = package("nvmetrics", "NCUObserver", "nvmetrics")

    def before_start(self) -> None:
        self._nvmetrics.measureMetricsStart(self.metrics, self.device)

    def after_finish(self) -> None:
        self._found = self._nvmetrics.measureMetricsStop()

    def get_results(self) -> dict[str, float]:
        return dict(zip(self.metrics, self._found, strict=True))
