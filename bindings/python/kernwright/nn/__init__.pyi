"""What neural networks are made of: functions of arrays, each a kernel or two."""

from kernwright.nn._norm import *
from kernwright.nn._norm_backward import *
from kernwright.nn._softmax import *
"""Pieces of neural networks."""

from kernwright.nn._quantize import dequantize_rows as dequantize_rows
from kernwright.nn._quantize import quantize_rows as quantize_rows
from kernwright.nn._sampling import greedy as greedy
from kernwright.nn._sampling import sample as sample
from kernwright.nn._activation_gradients import *
from kernwright.nn._activations import *
from kernwright.nn._embedding import *
from kernwright.nn._gates import *
from kernwright.nn._losses import *
from kernwright.nn._positions import *
from kernwright.nn._rope import *
