"""Kernel Tuner's functions, with its names and arguments."""
