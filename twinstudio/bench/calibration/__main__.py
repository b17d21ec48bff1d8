"""Prints the rows of one area, which is named on the command line, as one line of JSON."""

import json
import sys
from dataclasses import asdict

from twinstudio.bench.calibration import rows_of

if __name__ == "__main__":
    found = [asdict(row) for row in rows_of(sys.argv[1])]
    for row in found:
        row["figure"], row["passed"] = float(row["figure"]), bool(row["passed"])
    sys.stdout.write(f"\n{json.dumps(found)}\n")
