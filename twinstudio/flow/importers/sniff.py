"""What a file looks like, for a message that says what it is instead."""

import re
from pathlib import Path

from twinstudio.flow.importers import matfile
from twinstudio.model.errors import LogError

_NUMBER = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*")
_WIDTHS = {31: "ur10e_innopolis", 19: "ur10e_innopolis", 12: "schunk_tum"}
_HEADERS = {
    "t,q1,q2": "panda_gaz",
    "t,dq1_cmd": "panda_gaz",
    "Num;Timestamp;": "ur3_cobotops",
    "timestamp,target pos (": "servo_backlash",
}


def looks_like(path: Path) -> str:
    """The format `path` seems to have, empty when nothing fits."""
    if path.is_dir():
        return "rosbag2" if (path / "metadata.yaml").is_file() else ""
    try:
        with path.open("rb") as stream:
            head = stream.read(4096)
    except OSError:
        return ""
    if head.startswith(b"\x89MCAP"):
        return "mcap"
    if head.startswith(b"MATLAB"):
        return _mat(path)
    return "" if b"\0" in head else _text(head.decode("utf-8", "replace"))


def wrong(path: Path, expected: str, why: str) -> LogError:
    """An error that `path` is not of format `expected`, naming what it looks like."""
    other = looks_like(path)
    if other and other != expected:
        what = f"this looks like {other}, not {expected}: {why}"
        return LogError(what, where=str(path), hint=f"try the format {other}")
    return LogError(
        f"is not a log of format {expected}: {why}",
        where=str(path),
        hint="name another format, or import it as csv or mat with a mapping file",
    )


def _mat(path: Path) -> str:
    try:
        names = set(matfile.read(path))
    except LogError:
        return "mat"
    if {"qm", "qg", "vir"} <= names:
        return "emps"
    return "kuka_kr300" if "rec.act_pos_mot_deg" in names else "mat"


def _text(head: str) -> str:
    lines = head.lstrip("\ufeff").splitlines()
    if not lines:
        return ""
    for start, name in _HEADERS.items():
        if lines[0].startswith(start):
            return name
    fields = lines[0].split(",")
    if len(fields) > 1 and all(_NUMBER.fullmatch(field) for field in fields):
        return _WIDTHS.get(len(fields), "csv")
    widths = [len(line.split()) for line in lines[:3]]
    if widths[:3] == [1, 7, 7] or widths[:3] == [7, 7, 1]:
        return "cmu_push"
    return "csv" if len(fields) > 1 or ";" in lines[0] else ""
