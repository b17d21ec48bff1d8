"""Figures and series as one self-contained HTML page."""
