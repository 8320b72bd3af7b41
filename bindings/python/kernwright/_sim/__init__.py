"""What simulated devices show: traces, profiles of lines."""
