"""NumPy's older names of functions that have the array API's names here."""

from kernwright._array.elementwise import abs as absolute
from kernwright._array.elementwise import conj as conjugate
from kernwright._array.elementwise import divide as true_divide
from kernwright._array.elementwise import pow as power
from kernwright._array.elementwise import remainder as mod
from kernwright._array.functions import acos as arccos
from kernwright._array.functions import acosh as arccosh
from kernwright._array.functions import asin as arcsin
from kernwright._array.functions import asinh as arcsinh
from kernwright._array.functions import atan as arctan
from kernwright._array.functions import atan2 as arctan2
from kernwright._array.functions import atanh as arctanh
from kernwright._array.functions import round as around
from kernwright._array.logic import bitwise_invert as bitwise_not
from kernwright._array.logic import bitwise_invert as invert
from kernwright._array.logic import bitwise_left_shift as left_shift
from kernwright._array.logic import bitwise_right_shift as right_shift
from kernwright._array.manipulation import concat as concatenate
from kernwright._array.reductions import max as amax
from kernwright._array.reductions import min as amin
from kernwright._array.special import deg2rad as radians
from kernwright._array.special import rad2deg as degrees

__all__ = [
    "absolute",
    "amax",
    "amin",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "around",
    "bitwise_not",
    "concatenate",
    "conjugate",
    "degrees",
    "invert",
    "left_shift",
    "mod",
    "power",
    "radians",
    "right_shift",
    "true_divide",
]
