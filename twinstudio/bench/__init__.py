"""The measurements behind every number we state."""
