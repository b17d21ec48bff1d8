"""What the engine prints does not reach the user."""

import subprocess
import sys


def test_that_the_engine_does_not_greet() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import twinstudio.physics.world; print('ours')"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("ours\n", "")
