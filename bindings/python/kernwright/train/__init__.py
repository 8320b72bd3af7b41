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
from kernwright.train._finite import *
from kernwright.train._finite import __all__ as _finite
from kernwright.train._log import *
from kernwright.train._log import __all__ as _log
from kernwright.train._peak import *
from kernwright.train._peak import __all__ as _peak
from kernwright.train._shard_file import *
from kernwright.train._shard_file import __all__ as _shard_file
from kernwright.train._shards import *
from kernwright.train._shards import __all__ as _shards

__all__ = [*_checkpoint, *_finite, *_log, *_peak, *_shard_file, *_shards]

publish(globals(), __all__)
del publish
