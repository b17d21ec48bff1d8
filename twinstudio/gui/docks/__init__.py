"""Panels around the twin view; each refreshes from a frame and calls commands."""
