"""The table of this package's own operations: what is measured, beside whom, and how."""
