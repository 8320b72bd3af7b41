"""Tuning sessions: their arguments, trials, settings, and how one is shown while it runs."""
