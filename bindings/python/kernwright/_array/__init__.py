"""Arrays: how they are made, and methods that are easier said in Python."""
