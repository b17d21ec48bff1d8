"""Texts that others wrote, made fit to be shown."""

import re

_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")
MOST = 1000


def one_line(text: str, most: int = MOST) -> str:
    """`text` on one line, without control characters, at most `most` characters long."""
    flat = _UNPRINTABLE.sub(" ", text).strip()
    return flat if len(flat) <= most else f"{flat[: most - 1]}\u2026"
