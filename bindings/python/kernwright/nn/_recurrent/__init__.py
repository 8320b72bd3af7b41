"""LSTM and GRU: networks over sequences, their cells and their gradients."""

from kernwright.nn._recurrent import _cells, _gradients, _networks
from kernwright.nn._recurrent._cells import *
from kernwright.nn._recurrent._gradients import *
from kernwright.nn._recurrent._networks import *

__all__ = [*_cells.__all__, *_gradients.__all__, *_networks.__all__]
