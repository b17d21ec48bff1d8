"""What an import did, for people and for programs."""

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from twinstudio.flow.importers.checks import SourceCheck, check
from twinstudio.flow.importers.log import ImportedLog


class TableReport(msgspec.Struct, frozen=True, kw_only=True):
    """One table of the log: rows = kept + all dropped.

    where: reason -> numbers of the first rows dropped for it, from 1.
    """

    name: str
    rows: int
    kept: int
    dropped: dict[str, int]
    where: dict[str, tuple[int, ...]]


class ImportReport(msgspec.Struct, frozen=True, kw_only=True):
    """Rows, losses and defects of an import; rows = kept + all dropped.

    nan: readings missing in the rows kept. notes: decisions to know of.
    problems: defects of the log, in words.
    """

    format: str
    source: str
    out: str
    files: tuple[str, ...]
    rows: int
    kept: int
    dropped: dict[str, int]
    nan: int
    tables: tuple[TableReport, ...]
    sources: tuple[SourceCheck, ...]
    notes: tuple[str, ...]
    problems: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """The report as plain dicts, lists and numbers."""
        plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self))
        return plain

    def as_text(self) -> str:
        """The report for a terminal."""
        lines = [f"{self.format}: {self.source} -> {self.out}"]
        lines.append(f"  {self.kept} of {self.rows} rows kept")
        lines += [f"  {line}" for table in self.tables for line in _table_lines(table)]
        for source in self.sources:
            lines += [f"  source {source.name}: {line}" for line in _source_lines(source)]
        lines += [f"  problem: {text}" for text in self.problems]
        lines += [f"  note: {text}" for text in self.notes]
        return "\n".join(lines)


def report_of(format_: str, source: Path, out: Path, log: ImportedLog) -> ImportReport:
    """The report on `log`, imported from `source` to `out`."""
    checks = tuple(check(name, each) for name, each in log.sources.items())
    dropped: Counter[str] = sum((table.dropped for table in log.tables), Counter())
    found = [f"{c.name}: {text}" for c in checks for text in _problems(c)]
    found += [text for text in (_dropped_text(dropped),) if text]
    return ImportReport(
        format=format_,
        source=str(source),
        out=str(out),
        files=tuple(str(path) for path in log.files),
        rows=sum(table.rows for table in log.tables),
        kept=sum(table.kept for table in log.tables),
        dropped=dict(dropped),
        nan=sum(sum(each.nan.values()) for each in checks),
        tables=tuple(
            TableReport(
                name=table.name,
                rows=table.rows,
                kept=table.kept,
                dropped=dict(table.dropped),
                where={reason: tuple(rows) for reason, rows in table.where.items()},
            )
            for table in log.tables
        ),
        sources=checks,
        notes=tuple(log.notes),
        problems=(*log.problems, *found),
    )


def _dropped_text(dropped: Counter[str]) -> str:
    if not dropped:
        return ""
    return f"rows left out: {', '.join(f'{count} x {why}' for why, count in dropped.items())}"


def _table_lines(table: TableReport) -> list[str]:
    lines = []
    for reason, count in table.dropped.items():
        rows = ", ".join(str(number) for number in table.where[reason])
        more = ", ..." if count > len(table.where[reason]) else ""
        lines.append(f"{table.name}: {_count(count, 'row')} dropped, {reason} (rows {rows}{more})")
    return lines


def _source_lines(check: SourceCheck) -> list[str]:
    rate = f"{check.rate:.4g} Hz" if check.rate else "no rate"
    shortest, median, longest = (1e3 * value for value in check.intervals)
    return [
        f"{check.samples} samples, {check.duration:.4g} s, {rate}",
        f"intervals {shortest:.4g}, {median:.4g}, {longest:.4g} ms (least, median, most)",
    ]


def _problems(check: SourceCheck) -> list[str]:
    largest = f"the largest {check.largest_gap:.4g} s at {check.largest_gap_at:.4g} s"
    total = sum(check.nan.values())
    findings = (
        (check.gaps, f"{_count(check.gaps, 'gap')}, {largest}"),
        (check.duplicated, f"stamps equal to the one before (kept): {check.duplicated}"),
        (check.backward, f"stamps that go back (kept): {check.backward}"),
        (
            check.repeated,
            f"samples that repeat all numbers of the one before (kept): {check.repeated}",
        ),
        (total, f"readings missing: {total} in all; {_some(check.nan)}"),
        (check.empty, f"no reading at all: {_some(check.empty)}"),
        (check.constant, f"constant, maybe dead: {_some(check.constant)}"),
        (check.saturated, f"at their limit for a while: {_some(check.saturated)}"),
        (check.spikes, f"readings far off both neighbours (kept): {_some(check.spikes)}"),
    )
    return [text for found, text in findings if found]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _some(columns: dict[str, int] | tuple[str, ...], most: int = 4) -> str:
    texts = (
        [f"{name} {count}" for name, count in columns.items()]
        if isinstance(columns, dict)
        else list(columns)
    )
    return ", ".join(texts[:most]) + (f" and {len(texts) - most} more" if len(texts) > most else "")
