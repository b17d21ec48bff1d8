"""A gap report as one HTML page that needs nothing else: no links, no scripts."""

from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from twinstudio.model.errors import ReportError
from twinstudio.report import metrics, tables
from twinstudio.report.content import Panel, Report, colour
from twinstudio.report.numbers import number

__all__ = ["Panel", "Report", "render", "write_report"]


@dataclass(frozen=True, slots=True, eq=False)
class _Plot:
    """A panel with its SVG and its key: (name, colour, line width in px)."""

    panel: Panel
    svg: object
    keys: tuple[tuple[str, str, int], ...]


def write_report(path: Path, report: Report) -> Path:
    """Write `report` to `path`, with the folders it needs; returns `path`.

    Raises ReportError when it cannot be drawn or written.
    """
    return written(path, render(report))


def written(path: Path, page: str) -> Path:
    """Write the text `page` to `path`, with the folders it needs; raises ReportError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise ReportError(
            f"the report cannot be written: {error.strerror or error}", where=str(path)
        ) from error
    return path


def render(report: Report) -> str:
    """The whole page as HTML; all text is escaped."""
    shown = tables.motion_tables(report.table, report.layout)
    timing = tables.timing_table(report.table)
    if timing is not None:
        shown.append(timing)
    return filled(
        "page.html",
        report=report,
        samples=report.table.samples,
        seconds=number((report.table.end - report.table.start) / 1e9),
        headlines=tables.headlines(report.table, report.layout),
        tables=shown,
        absent=tables.absent(report.layout),
        reasons=_numbered(shown),
        notes=[*report.notes, *report.table.notes],
        metrics=[metrics.said(one, f"metric{k}-") for k, one in enumerate(report.metrics)],
        plots=_plots(report.panels),
        health=tables.health_table(dict(report.health)),
    )


def filled(template: str, **values: object) -> str:
    """The page `template` of this package, with `values`; all text is escaped."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined  # noqa: PLC0415 - only reports
    from markupsafe import Markup  # noqa: PLC0415 - comes with jinja2

    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=FunctionLoader(_part),
    )
    style = Markup(_part("style.css"))  # noqa: S704 - our own
    return environment.get_template(template).render(style=style, **values)


def _part(name: str) -> str:
    return resources.files("twinstudio.report").joinpath(name).read_text("utf-8")


def _numbered(shown: list[tables.Table]) -> dict[str, int]:
    """Every reason for a missing figure with its number, in order of appearance."""
    reasons: dict[str, int] = {}
    for table in shown:
        for row in table.rows:
            for cell in row.cells:
                if cell.reason:
                    reasons.setdefault(cell.reason, len(reasons) + 1)
    return reasons


def _plots(panels: tuple[Panel, ...]) -> list[_Plot]:
    if not panels:
        return []
    from markupsafe import Markup  # noqa: PLC0415 - comes with jinja2

    from twinstudio.report.plots import panel_svg  # noqa: PLC0415 - matplotlib loads slowly

    return [
        _Plot(
            panel,
            Markup(panel_svg(panel, prefix=f"plot{k}-")),  # noqa: S704 - our own drawing
            tuple(
                (name, colour(name, order), 4 if name == "cell" else 2)
                for order, name in enumerate(panel.traces)
            ),
        )
        for k, panel in enumerate(panels)
    ]
