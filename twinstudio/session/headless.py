"""A session without a window: run, record, and sum up."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from twinstudio.gap.table import as_json
from twinstudio.model.errors import ProcessError
from twinstudio.model.gaps import GapTable
from twinstudio.model.provenance import digest, provenance
from twinstudio.model.views import Snapshot
from twinstudio.report.page import Report, write_report
from twinstudio.session.panels import healths, panels_of_session
from twinstudio.session.places import new_file, places
from twinstudio.session.session import Session

START_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a headless run leaves: the gap over the run, and files."""

    table: GapTable
    figures: dict[str, Any]
    recording: Path
    report: Path


def run_headless(scene: str | Path, *, seconds: float, out: Path | None = None) -> Outcome:
    """Run `scene` beside its cell for `seconds`; record; write a report.

    Files go to the folder `out`, or to the user's folders. Raises ProcessError
    when twin or cell do not start, or the run ends without a gap to tell.
    """
    with Session.open(scene) as session:
        _wait_until_paired(session)
        name = Path(session.scene.folder).name
        folder = out or places()["reports"]
        recording = Path(str(session.run("record.start", path=_file(out, name, ".mcap"))))
        session.run("gap.reset")
        time.sleep(seconds)
        session.run("record.stop")
        snapshot = session.snapshot()
        if snapshot.run is None:
            raise ProcessError("the run ended without a single pair of twin and cell")
        layout = session.gap_layout
        assert layout is not None
        report = write_report(
            Path(_file(out, name, ".html") or new_file(folder, name, ".html")),
            Report(
                title=session.scene.name,
                subtitle=f"{seconds:g} s beside the {_title(snapshot)}",
                created=time.strftime("%Y-%m-%d %H:%M"),
                table=snapshot.run,
                layout=layout,
                panels=panels_of_session(session, layout=layout, seconds=min(seconds, 20.0)),
                health=healths(snapshot),
                notes=tuple(e.text for e in session.entries(0) if e.level != "info"),
                provenance=provenance(inputs={recording.name: digest(recording)}),
            ),
        )
    return Outcome(snapshot.run, as_json(snapshot.run), recording, report)


def _wait_until_paired(session: Session) -> None:
    deadline = time.monotonic() + START_SECONDS
    while session.snapshot().run is None:
        if time.monotonic() > deadline:
            told = "; ".join(e.text for e in session.entries(0) if e.level != "info")
            raise ProcessError(f"twin and cell did not start within {START_SECONDS:g} s", hint=told)
        time.sleep(0.05)


def _file(out: Path | None, name: str, suffix: str) -> str:
    if out is None:
        return ""
    return str(new_file(out, name, suffix))


def _title(snapshot: Snapshot) -> str:
    cell = snapshot.source("cell")
    return cell.title if cell is not None else "cell"
