"""Twinstudio: the workbench for the digital twin of one robot cell."""

__version__ = "0.1.0"
