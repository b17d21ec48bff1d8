"""From a foreign log to a recording: pick the parser, check, write, report."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from twinstudio.flow.importers import (
    cmu_push,
    delimited,
    emps,
    kuka_kr300,
    mat,
    panda_gaz,
    ros,
    schunk_tum,
    servo_backlash,
    ur3_cobotops,
    ur10e_innopolis,
)
from twinstudio.flow.importers.log import ImportedLog
from twinstudio.flow.importers.report import ImportReport, report_of
from twinstudio.flow.importers.stamps import within_recording
from twinstudio.flow.record import RecordingWriter, SourceDescription
from twinstudio.model.errors import LogError, RecordingError
from twinstudio.model.provenance import digest, provenance

Reader = Callable[[Path], ImportedLog]
MappedReader = Callable[[Path, Path | None], ImportedLog]

FIXED: Mapping[str, Reader] = {
    "panda_gaz": panda_gaz.read,
    "emps": emps.read,
    "kuka_kr300": kuka_kr300.read,
    "ur10e_innopolis": ur10e_innopolis.read,
    "schunk_tum": schunk_tum.read,
    "cmu_push": cmu_push.read,
    "ur3_cobotops": ur3_cobotops.read,
    "servo_backlash": servo_backlash.read,
    "mcap": ros.read_mcap,
    "rosbag2": ros.read_rosbag2,
}
MAPPED: Mapping[str, MappedReader] = {"csv": delimited.read, "mat": mat.read}
FORMATS: tuple[str, ...] = (
    "panda_gaz", "emps", "kuka_kr300", "ur10e_innopolis", "schunk_tum", "cmu_push",
    "ur3_cobotops", "servo_backlash", "csv", "mat", "mcap", "rosbag2",
)  # fmt: skip


def read_log(format: str, source: Path, *, mapping: Path | None = None) -> ImportedLog:  # noqa: A002
    """Read a foreign log without writing anything; see `import_log`."""
    if format in MAPPED:
        return within_recording(MAPPED[format](source, mapping))
    if format not in FIXED:
        raise LogError(f"unknown format '{format}'", hint=f"known: {', '.join(FORMATS)}")
    if mapping is not None:
        raise LogError(
            f"format {format} takes no mapping file", hint=f"only {', '.join(MAPPED)} do"
        )
    return within_recording(FIXED[format](source))


def import_log(
    format: str,  # noqa: A002 - the word users know
    source: Path,
    out: Path,
    *,
    mapping: Path | None = None,
    overwrite: bool = True,
) -> ImportReport:
    """Turn the log `source` into the recording `out`.

    format: one of FORMATS. mapping: a mapping file, for csv and mat.
    An existing `out` is replaced, after everything was read and written beside
    it; with `overwrite` false it is an error. Raises LogError when the log
    cannot be read, SceneError for a malformed mapping file and RecordingError
    when `out` cannot be written; `out` is then as it was.
    """
    source, out = Path(source), Path(out)
    if out.is_dir():
        raise LogError("is a folder", where=str(out), hint="name the file of the recording")
    log = read_log(format, source, mapping=mapping)
    if any(out.resolve() == path.resolve() for path in log.files):
        raise LogError("the recording would replace the log itself", where=str(out))
    if out.exists() and not overwrite:
        raise LogError("exists already", where=str(out), hint="name another file")
    if not out.parent.is_dir():
        raise RecordingError("there is no such folder", where=str(out.parent), hint="make it first")
    report = report_of(format, source, out, log)
    part = out.with_name(out.name + ".part")
    try:
        _write(part, log, report)
        os.replace(part, out)  # noqa: PTH105 - Path.replace would do the same
    finally:
        part.unlink(missing_ok=True)
    return report


def _write(path: Path, log: ImportedLog, report: ImportReport) -> None:
    origin = provenance(inputs={file.name: digest(file) for file in log.files})
    with RecordingWriter(path, provenance=origin, overwrite=True) as writer:
        for name, source in log.sources.items():
            title = f"{report.format} {Path(report.files[0]).name}"
            description = SourceDescription(source.role, title, source.layout, source.rate)
            writer.source(name, description)
            writer.write(name, source.block)
        first = min(int(s.block.stamps.min()) for s in log.sources.values() if len(s.block))
        for code, texts in (("import.note", report.notes), ("import.problem", report.problems)):
            for text in texts:
                writer.note(text, code=code, at=first)
