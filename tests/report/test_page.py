import math
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from msgspec import structs

from twinstudio.gap.table import tabulate
from twinstudio.model.block import Block
from twinstudio.model.errors import ReportError
from twinstudio.model.gaps import GapTable
from twinstudio.model.health import Health
from twinstudio.model.measured import Measured
from twinstudio.model.pair import Pair
from twinstudio.model.provenance import provenance
from twinstudio.model.results import Change, Image, Patch, Scalar, Series, Table
from twinstudio.model.signals import Layout, joint_signals, pose_signal
from twinstudio.report.content import colour
from twinstudio.report.numbers import number
from twinstudio.report.page import Panel, Report, render, write_report
from twinstudio.report.plots import PIXELS, decimated

MS = 1_000_000
JOINTS = ("shoulder", "<b>elbow</b>", "a_joint_with_a_very_long_name_indeed_longer_than_a_column")
KINDS = ("joint.position", "joint.velocity", "command.velocity")
LAYOUT = Layout((*joint_signals(JOINTS, kinds=KINDS), pose_signal("tcp.pose")))
VOID = {"meta", "br", "hr", "img", "link", "input"}


class Strict(HTMLParser):
    """Collects text and ids; fails on a tag that is not closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)
        self.ids += [value for key, value in attrs if key == "id"]
        self.links += [value for key, value in attrs if key in ("href", "src")]

    def handle_startendtag(self, tag, attrs):
        self.ids += [value for key, value in attrs if key == "id"]
        self.links += [value for key, value in attrs if key in ("href", "src")]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def read(page: str) -> Strict:
    parser = Strict()
    parser.feed(page)
    parser.close()
    assert parser.open == []
    return parser


def example() -> tuple[Pair, GapTable]:
    n = 3000
    t = np.arange(n) * 1e-3
    rng = np.random.default_rng(0)
    cell = np.zeros((n, LAYOUT.width))
    for c in range(3):
        cell[:, c] = np.sin((1 + c) * t)
        cell[:, 3 + c] = (1 + c) * np.cos((1 + c) * t)
        cell[:, 6 + c] = (1 + c) * np.cos((1 + c) * (t + 0.02))
    cell[:, 8] = 0.0  # the last joint is never told to move
    twin = cell + rng.normal(scale=0.01, size=cell.shape)
    twin[:, 5] = np.nan
    pair = Pair(LAYOUT, np.arange(n) * MS, twin, cell)
    floor = {"shoulder": {"position": 1e-4}}
    return pair, tabulate(pair, command=Block(LAYOUT, pair.stamps, cell), floor=floor)


def report(**changes) -> Report:
    pair, table = example()
    t = pair.stamps / 1e9
    panels = tuple(
        Panel(
            f"{name} <position>",
            "rad",
            {"cell": (t, pair.cell[:, c]), "twin": (t, pair.twin[:, c])},
            (t, pair.gap[:, c]),
        )
        for c, name in enumerate(JOINTS[:2])
    )
    plain = {
        "title": "Gap of <script>alert(1)</script> & co",
        "subtitle": "a test",
        "created": "today",
        "table": table,
        "layout": LAYOUT,
        "panels": panels,
        "notes": ("a note with <i>tags</i>",),
        "health": {"cell": Health(state="silent", text="nothing for 3 s", lost=7)},
        "provenance": provenance(seed=42, inputs={"scene.toml": "abc123"}),
    }
    return Report(**(plain | changes))


def test_that_the_page_parses_and_needs_nothing_else():
    page = render(report())
    parsed = read(page)
    assert all(link.startswith("#") for link in parsed.links)
    assert "http" not in page
    assert "<script" not in page
    assert len(set(parsed.ids)) == len(parsed.ids)
    assert {link[1:] for link in parsed.links} <= set(parsed.ids)
    assert "prefers-color-scheme: dark" in page


def test_that_every_joint_and_figure_is_there():
    made = report()
    text = " ".join(read(render(made)).text)
    for name in JOINTS:
        assert name in text
    degrees = 180 / np.pi
    for joint in (*made.table.joints, made.table.overall):
        for figures in (joint.position, joint.velocity):
            if figures is None:
                continue
            for value in (figures.rmse, figures.maximum, figures.bias):
                assert number(degrees * value) in text
            assert number(100 * figures.relative) in text
        if joint.command_to_motion is not None:
            assert number(1e3 * joint.command_to_motion.seconds) in text
    assert number(1e3 * made.table.tcp.rmse) + " mm" in text
    assert number(degrees * 1e-4) in text
    for note in (*made.notes, *made.table.notes, "nothing for 3 s", "seed 42", "abc123"):
        assert note in text


def test_that_names_are_escaped():
    page = render(report())
    assert "<b>elbow</b>" not in page
    assert "&lt;b&gt;elbow&lt;/b&gt;" in page
    assert "&lt;script&gt;" in page


def test_that_a_missing_figure_says_why():
    text = " ".join(read(render(report())).text)
    assert "–" in text
    for reason in (
        "twin and cell have no reading at the same time",
        "the command does not move",
        "no command of the twin is known",
        "no repeats are known",
        "Not compared, since twin or cell has no such signal: effort, current.",
    ):
        assert reason in text


def test_that_joints_of_mixed_units_carry_theirs_in_each_figure():
    layout = Layout(joint_signals(("arm", "rail"), ("rail",), kinds=("joint.position",)))
    n = 10
    pair = Pair(layout, np.arange(n) * MS, np.full((n, 2), 0.0123), np.ones((n, 2)) * 0.0)
    text = " ".join(read(render(report(table=tabulate(pair), layout=layout, panels=()))).text)
    assert "12.3 mm" in text
    assert "0.705 deg" in text
    assert "all joints" not in text
    assert "the cell's signal is zero throughout" in text


def test_that_an_empty_table_still_makes_a_page():
    empty = Pair(LAYOUT, np.arange(0), *[np.empty((0, LAYOUT.width))] * 2)
    read(render(Report(title="nothing", table=tabulate(empty), layout=LAYOUT)))


def test_that_plots_follow_the_page_and_keep_text_as_text():
    page = render(report())
    assert page.count("<svg") == 2
    assert re.search(r"<text[^>]*>deg</text>", page)
    assert "currentColor" in page
    assert not re.search(r"#01020\d", page)
    assert colour("twin", 0) == "#0072B2"
    assert "#0072b2" in page
    assert "#e69f00" in page


def test_that_plots_of_silence_and_of_one_value_can_be_drawn():
    t = np.arange(5.0)
    panels = (
        Panel("nothing", "1", {"cell": (t, np.full(5, np.nan))}, (t, np.full(5, np.nan))),
        Panel("one", "1", {"cell": (t[:1], np.ones(1))}),
        Panel("none", "1", {"cell": (t[:0], t[:0])}),
    )
    read(render(report(panels=panels)))


def test_that_a_trace_of_unequal_lengths_is_refused():
    panel = Panel("p", "rad", {"twin": (np.arange(3.0), np.arange(4.0))})
    with pytest.raises(ReportError, match="trace 'twin' of 'p' has \\[3\\] times and \\[4\\]"):
        render(report(panels=(panel,)))


def test_that_the_file_is_written_with_its_folder(tmp_path):
    path = write_report(tmp_path / "new" / "gap.html", report(panels=()))
    read(path.read_text(encoding="utf-8"))


def test_that_a_report_that_cannot_be_written_says_so(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ReportError, match="cannot be written"):
        write_report(tmp_path / "file" / "gap.html", report(panels=()))


def test_that_decimation_keeps_extremes_and_holes():
    rng = np.random.default_rng(0)
    t = np.linspace(0, 10, 200_000)
    values = rng.normal(size=len(t))
    values[1234] = 99.0
    values[100_000:120_000] = np.nan
    x, y = decimated(t, values, PIXELS)
    assert len(x) == len(y) <= 2 * PIXELS
    assert np.nanmax(y) == 99.0
    assert np.nanmin(y) == np.nanmin(values)
    assert np.isnan(y).sum() >= 2 * int(0.1 * PIXELS) - 4


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (1.0, "1.00"),
        (-0.012345, "−0.0123"),
        (0.9996, "1.00"),
        (99.96, "100"),
        (1234.5, "1234"),
        (123456.0, "123456"),
        (1.5e-7, "1.50e−7"),
        (2.5e9, "2.50e9"),
        (float("nan"), "–"),
        (None, "–"),
    ],
)
def test_that_numbers_have_three_significant_digits(value, text):
    assert number(value) == text


PNG = b"\x89PNG\r\n\x1a\n"
SAID = Measured(
    plugin="acme.wear",
    version="2.1",
    title="<b>Wear</b>",
    params={"width": 0.02},
    results=(
        Scalar(name="wear <i>", value=math.pi / 180, unit="rad", low=0.0, note="<u>worn</u>"),
        Scalar(name="share", value=0.5, unit="1"),
        Table(
            name="rows",
            columns=("joint", "n", "<gap>"),
            units=("", "1", "m"),
            rows=tuple(("j1", 3, 0.001 if k else None) for k in range(501)),
        ),
        Series(name="curve", x=(0.0, 1.0, 2.0), y=(1.0, math.nan, 2.0), x_unit="Hz", y_unit="m"),
        Image(name="shot", format="png", data=PNG),
        Patch(name="gain", changes=(Change(key="a.b", value=1.5),), reason="it is better"),
    ),
)


def test_that_metrics_are_shown_with_unit_interval_plugin_and_version():
    page = render(report(metrics=(SAID, structs.replace(SAID, plugin="acme.other"))))
    parsed = read(page)
    text = " ".join(" ".join(parsed.text).split())
    for words in ("acme.wear 2.1", "width = 0.02", "1.00 deg", "\u2265 0", "share 0.500"):
        assert words in text
    for words in ("<b>Wear</b>", "wear <i>", "<u>worn</u>", "<gap> [mm]"):
        assert words in text
    for words in ("and 1 more rows", "curve", "Hz", "a.b 1.5", "it is better"):
        assert words in text
    assert len(set(parsed.ids)) == len(parsed.ids)
    assert page.count("data:image/png;base64,") == 2
    assert "<script" not in page


def test_that_a_metric_that_failed_says_why():
    failed = structs.replace(SAID, results=(), error="raised <ValueError>")
    nothing = structs.replace(SAID, results=())
    text = " ".join(read(render(report(metrics=(failed, nothing)))).text)
    assert "Failed: raised <ValueError>" in text
    assert "It found nothing to measure." in text
    assert "Metrics of plugins" not in " ".join(read(render(report())).text)
