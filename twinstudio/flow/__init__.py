"""Blocks in motion: wire format, sockets, clocks, history, alignment, recordings, imports."""
