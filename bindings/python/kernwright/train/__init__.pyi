"""What surrounds a training loop: checkpoints, data, logs."""

from kernwright.train._checkpoint import Checkpoint as Checkpoint
from kernwright.train._finite import FiniteCheck as FiniteCheck
from kernwright.train._finite import NotFinite as NotFinite
from kernwright.train._log import Log as Log
from kernwright.train._log import write_page as write_page
from kernwright.train._peak import peak_flops as peak_flops
from kernwright.train._shard_file import write_shard as write_shard
from kernwright.train._shards import Shards as Shards
