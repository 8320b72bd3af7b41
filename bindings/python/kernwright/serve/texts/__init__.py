"""Prompts of bodies, and the texts that come of them."""
