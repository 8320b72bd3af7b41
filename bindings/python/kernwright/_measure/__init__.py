"""Times of kernels, recordings of activities."""
