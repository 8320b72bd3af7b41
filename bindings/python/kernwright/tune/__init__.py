"""Tuning: spaces of configurations and searches through them.

>>> import kernwright as kw
>>> space = kw.tune.Space(block=[32, 64, 128], tile=range(1, 9))
>>> space.require("block * tile <= 512")
Space(block: 3, tile: 8; 1 restriction)
>>> len(space)
20
>>> search = kw.tune.Strategy(space, seed=0)
>>> for config in search.ask(4):
...     search.tell(config, cost=config["block"] / config["tile"])
"""

from typing import TYPE_CHECKING

from kernwright._support.typed import publish
from kernwright.tune._cluster import Cluster
from kernwright.tune._config import Config
from kernwright.tune._expression import Expression
from kernwright.tune._kernel_tuner.python_kernel import PythonKernel
from kernwright.tune._kernel_tuner.run_kernel import run_kernel
from kernwright.tune._kernel_tuner.tuning import tune_kernel
from kernwright.tune._library import library
from kernwright.tune._online import Online
from kernwright.tune._online_search import OnlineTrial
from kernwright.tune._plans import Plans
from kernwright.tune._products import products
from kernwright.tune._report import write_report
from kernwright.tune._sessions.session import Session
from kernwright.tune._sessions.trial import Best, Trial
from kernwright.tune._space import Space
from kernwright.tune._store import Match, Store
from kernwright.tune._strategy import Strategy
from kernwright.tune._table import Table
from kernwright.tune._tuned import Choice, Tuned

from kernwright.tune import accuracy as accuracy, observers as observers  # isort: skip

if TYPE_CHECKING:
    from kernwright.tune._strategy import strategies
else:
    from kernwright.tune import strategies

__all__ = [
    "Best",
    "Choice",
    "Cluster",
    "Config",
    "Expression",
    "Match",
    "Online",
    "OnlineTrial",
    "Plans",
    "PythonKernel",
    "Session",
    "Space",
    "Store",
    "Strategy",
    "Table",
    "Trial",
    "Tuned",
    "library",
    "products",
    "run_kernel",
    "strategies",
    "tune_kernel",
    "write_report",
]

publish(globals(), __all__)
