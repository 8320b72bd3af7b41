"""Fused kernels: traced functions and expression strings, makers of kernels, the text of both."""
