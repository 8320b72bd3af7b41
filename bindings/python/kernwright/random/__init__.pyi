"""Random numbers made on the device."""

from kernwright.random._functions import bernoulli as bernoulli
from kernwright.random._functions import choice as choice
from kernwright.random._functions import default_generator as default_generator
from kernwright.random._functions import exponential as exponential
from kernwright.random._functions import gamma as gamma
from kernwright.random._functions import integers as integers
from kernwright.random._functions import normal as normal
from kernwright.random._functions import permutation as permutation
from kernwright.random._functions import seed as seed
from kernwright.random._functions import shuffle as shuffle
from kernwright.random._functions import uniform as uniform
from kernwright.random._generator import Generator as Generator
