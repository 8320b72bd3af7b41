"""What surrounds a training loop: checkpoints, data, logs."""

from kernwright.train._checkpoint import Checkpoint as Checkpoint
