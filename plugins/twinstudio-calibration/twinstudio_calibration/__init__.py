"""Fitters that find the parameters of joints, arm and payload in logs of the cell."""
