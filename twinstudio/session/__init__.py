"""What runs a scene: processes, links, gap, recording and commands; no window."""
