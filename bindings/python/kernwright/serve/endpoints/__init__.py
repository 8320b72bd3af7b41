"""The interfaces of clients, a path each."""
