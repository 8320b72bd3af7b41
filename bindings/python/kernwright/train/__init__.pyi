"""What surrounds a training loop: checkpoints, data, logs."""

from kernwright.train._checkpoint import Checkpoint as Checkpoint
from kernwright.train._shard_file import write_shard as write_shard
from kernwright.train._shards import Shards as Shards
