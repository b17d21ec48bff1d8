"""Logs of real robots, CSV, MATLAB and ROS 2 files, turned into recordings."""

from twinstudio.flow.importers.convert import FORMATS, import_log, read_log
from twinstudio.flow.importers.log import ImportedLog, ImportedSource
from twinstudio.flow.importers.report import ImportReport

__all__ = ["FORMATS", "ImportReport", "ImportedLog", "ImportedSource", "import_log", "read_log"]
