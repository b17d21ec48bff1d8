"""The twin process beside the emulated cell: its pace, and how late its steps are."""

import time

from twinstudio.bench.row import Row
from twinstudio.flow.link import Link
from twinstudio.session.child import Child

SCENE = "panda_cell"
SETTLE = 3.0


def measure(seconds: float) -> list[Row]:
    """Pace over `seconds` by both clocks; lateness of the last ten thousand steps."""
    cell, twin = Child("cell", ["cell", SCENE]), Child("twin", ["twin", SCENE])
    try:
        with Link(twin.ready()["control"]) as link:
            link.wait()
            link.request("follow", control=cell.ready()["control"], timeout=5.0)
            time.sleep(SETTLE)
            first, began = link.request("status"), time.monotonic()
            time.sleep(seconds)
            last, ended = link.request("status"), time.monotonic()
    finally:
        twin.stop()
        cell.stop()
    pace = (last["steps"] - first["steps"]) * 1e-3 / (ended - began)
    late = last["lateness"] * 1e3
    left_out = (last["left_out"] - first["left_out"]) * 1e3
    return [
        Row("twin.real_time", pace, "simulated / real", "1.00 +- 0.01", abs(pace - 1) <= 0.01),
        Row("twin.lateness_p99", late, "ms", "< 2", late < 2.0),
        Row("twin.left_out", left_out, f"ms in {seconds:g} s", "0", left_out == 0.0),
    ]
