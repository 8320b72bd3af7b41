"""Weights of few bits in files of Hugging Face's layout."""
