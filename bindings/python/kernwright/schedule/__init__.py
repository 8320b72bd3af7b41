"""Shares one device between tasks, with a cluster's words: requests and limits of memory and of the
device's time, classes of service, admission, policies.

>>> import kernwright as kw
>>> scheduler = kw.schedule.Scheduler(memory=2**30)
>>> task = scheduler.submit(kw.ones, 3, name="ones")
>>> task.result().numpy().tolist()
[1.0, 1.0, 1.0]
>>> task.state
'done'
"""

import atexit as _atexit

from kernwright._core import ScheduledTask as Task
from kernwright._core import Scheduler, _end_schedulers
from kernwright._support.typed import publish
from kernwright.errors import Refused
from kernwright.schedule._kept import Kept
from kernwright.schedule._plan import Plan, Planned, PlannedTask, plan
from kernwright.schedule._policy import Candidate, Load, policies

__all__ = [
    "Candidate", "Kept", "Load", "Plan", "Planned", "PlannedTask", "Refused", "Scheduler", "Task",
    "plan", "policies",
]  # fmt: skip

publish(globals(), __all__)
_atexit.register(_end_schedulers)
del publish
