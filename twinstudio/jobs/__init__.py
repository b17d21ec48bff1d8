"""Long work in child processes, and runs: what was done, from what, with which result."""
