"""Recordings: MCAP files that other tools open and that survive a crash."""

from twinstudio.flow.record.writer import RecordingWriter, SourceDescription

__all__ = ["RecordingWriter", "SourceDescription"]
