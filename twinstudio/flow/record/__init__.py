"""Recordings: MCAP files that other tools open and that survive a crash."""

from twinstudio.flow.record.foreign import read_foreign
from twinstudio.flow.record.reader import read_recording
from twinstudio.flow.record.recorder import Recorder
from twinstudio.flow.record.recording import RecordedEvent, RecordedSource, Recording, Stretch
from twinstudio.flow.record.schema import ClockRecord, EventRecord
from twinstudio.flow.record.writer import RecordingWriter, SourceDescription

__all__ = [
    "ClockRecord",
    "EventRecord",
    "RecordedEvent",
    "RecordedSource",
    "Recorder",
    "Recording",
    "RecordingWriter",
    "SourceDescription",
    "Stretch",
    "read_foreign",
    "read_recording",
]
