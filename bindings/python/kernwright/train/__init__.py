"""What surrounds a training loop: checkpoints, data, logs. The loop is yours.

>>> import kernwright as kw
>>> model = kw.nn.Linear(2, 3)
>>> checkpoint = kw.train.Checkpoint("run")
>>> checkpoint.save(model=model, step=1)
>>> checkpoint.wait()
>>> checkpoint.load(model=model)
{'step': 1}
"""

from kernwright._support.typed import publish
from kernwright.train._checkpoint import *
from kernwright.train._checkpoint import __all__ as _checkpoint

__all__ = [*_checkpoint]

publish(globals(), __all__)
del publish
