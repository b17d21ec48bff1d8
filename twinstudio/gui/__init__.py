"""The Qt window: one face of a session."""
