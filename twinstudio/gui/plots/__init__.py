"""Twin and cell in one axis, the gap beneath, over a shared stretch of time."""
