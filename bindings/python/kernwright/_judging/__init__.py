"""The referee: tasks, verdicts, and who makes them."""
