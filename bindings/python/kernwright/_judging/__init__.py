"""The judge: tasks, verdicts, and their makers."""
