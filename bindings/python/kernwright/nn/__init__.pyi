"""What neural networks are made of: functions of arrays, each a kernel or two."""

from kernwright.nn._norm import *
from kernwright.nn._norm_backward import *
from kernwright.nn._softmax import *
