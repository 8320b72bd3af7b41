"""What every package here uses."""
