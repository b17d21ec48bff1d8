"""A replayed recording as a process: what stands for the cell when there is only a log."""

from pathlib import Path

from twinstudio.flow.lifetime import Lifetime
from twinstudio.flow.record import read_recording
from twinstudio.flow.replay import Replay


def serve(
    log: Path,
    *,
    source: str = "cell",
    rate: float = 1.0,
    loop: bool = False,
    paused: bool = False,
    control_port: int = 0,
    attached: bool = False,
) -> None:
    """Publish `source` of the recording `log` until the process is told to end.

    Prints ``{"control": "tcp://..."}`` when it is ready. Raises RecordingError if
    the log cannot be played, LinkError if the port is taken.
    """
    lifetime = Lifetime(attached=attached)
    replay = Replay(
        read_recording(log),
        source=source,
        rate=rate,
        loop=loop,
        paused=paused,
        control_port=control_port,
    )
    try:
        lifetime.announce(replay.control)
        lifetime.wait()
    finally:
        replay.close()
