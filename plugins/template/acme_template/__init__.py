"""Template, a plugin for Twinstudio."""
