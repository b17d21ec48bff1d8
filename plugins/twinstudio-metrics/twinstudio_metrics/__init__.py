"""Metrics of the gap between twin and cell."""
