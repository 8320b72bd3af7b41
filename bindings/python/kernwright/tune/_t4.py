"""T4: the file format in which auto-tuners exchange results."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

from kernwright._support.files import write_whole
from kernwright.tune._sessions.trial import Trial


def _row(trial: Trial) -> dict[str, Any]:
    measurements = []
    if trial.time is not None:
        measurements.append({"name": "time", "value": trial.time, "unit": "ms"})
    elif trial.score is not None:
        measurements.append({"name": "time", "value": trial.score, "unit": ""})
    measurements += [
        {"name": name, "value": value, "unit": ""}
        for name, value in trial.metrics.items()
        if name != "time"
    ]
    return {
        "configuration": dict(trial.config),
        "objectives": ["time"],
        "times": {
            "compilation_time": trial.compile_seconds * 1000,
            "framework": 0,
            "search_algorithm": 0,
            "validation": trial.verify_seconds * 1000,
            "runtimes": list(trial.times),
        },
        "invalidity": trial.status,
        "correctness": 1 if trial.status == "correct" else 0,
        "measurements": measurements if trial.status == "correct" else [],
    }


def write_t4(path: str | os.PathLike[str], trials: Sequence[Trial], device: str) -> None:
    """Writes a T4 file. `path` is replaced only by a whole one."""
    document = {
        "schema_version": "1.0.0",
        "metadata": {"device": device},
        "results": [_row(trial) for trial in trials],
    }
    write_whole(path, json.dumps(document, indent=1) + "\n")
