"""Functions of NumPy that are made of the array library's own kernels, by topic."""
