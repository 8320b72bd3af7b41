"""The gradient of each operation, in terms of operations that exist.

A rule gets the result of a call and its arguments, and returns pairs: an operand, and a function
from the gradient of the result to that of the operand. Rules may be careless about two things that
the sweep (backward.py) does at one place: a gradient that is larger than its operand is summed over
the axes along which the operand was repeated, and it is converted to the operand's dtype. Of
complex results a pullback gets the conjugated gradient, and its result is conjugated.
"""
