"""Continuous batching: a model that serves requests of many threads."""
