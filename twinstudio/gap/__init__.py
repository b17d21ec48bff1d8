"""Pure functions from pairs of twin and cell to figures."""
