"""Bytes, limits and errors of HTTP."""
