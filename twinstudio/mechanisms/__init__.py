"""Mechanisms of a joint's drive: their laws, and one compiled kernel that runs them together."""
