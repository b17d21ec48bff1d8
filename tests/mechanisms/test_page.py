"""The page on mechanisms: every key, every plot, and where the help finds it."""

import re
import tomllib

import msgspec
import numpy as np
import pytest

from twinstudio.mechanisms.plots import DOCS, PLOTS, draw, path_of
from twinstudio.model.config import convert
from twinstudio.model.drive import Drive, LinkInertia, Payload

PAGE = (DOCS / "mechanisms.md").read_text(encoding="utf-8")
SECTIONS = [field.type for field in msgspec.structs.fields(Drive) if isinstance(field.type, type)]


def section_of(struct):
    (name,) = [f.name for f in msgspec.structs.fields(Drive) if f.type is struct]
    text = PAGE.split(f"`[drive.{name}]`\n")[1]
    return text.split("\n## ")[0]


@pytest.mark.parametrize("struct", SECTIONS)
def test_that_every_key_is_explained_in_its_section(struct):
    text = section_of(struct)
    missing = [f.name for f in msgspec.structs.fields(struct) if f"`{f.name}`" not in text]
    assert not missing


def test_that_every_section_and_inertial_key_is_explained():
    assert len(SECTIONS) == 8
    keys = [f.name for s in (LinkInertia, Payload) for f in msgspec.structs.fields(s)]
    assert not [key for key in keys if f"`{key}`" not in PAGE]


def test_that_every_mechanism_is_named():
    (switch,) = [f for f in msgspec.structs.fields(Drive) if f.name == "off"]
    names = re.findall(r"'(\w+)'", str(switch.type))
    assert len(names) == 14
    assert not [name for name in names if f"`{name}`" not in PAGE]


def test_that_the_example_is_a_drive():
    (example,) = re.findall(r"\n((?:    .*\n)+)", PAGE)
    text = "\n".join(line.strip() for line in example.splitlines())
    drive = convert(tomllib.loads(text)["drive"], Drive, where="page")
    assert drive.friction.presliding == pytest.approx((0.3e-3,))


def test_that_the_page_shows_every_plot_and_no_other():
    shown = re.findall(r"\]\((mechanisms-.*?\.svg)\)", PAGE)
    assert sorted(shown) == sorted(path_of(name).name for name in PLOTS)
    assert not [name for name in shown if not (DOCS / name).is_file()]


@pytest.mark.parametrize("name", PLOTS)
def test_that_a_plot_is_of_the_law_as_it_is_now(name, tmp_path):
    plot = PLOTS[name]()
    assert all(np.isfinite(c.y).all() and len(c.x) == len(c.y) for c in plot.curves)
    drawn = tmp_path / "drawn.svg"
    draw(plot, drawn)
    now, kept = (lines_of(path.read_text(encoding="utf-8")) for path in (drawn, path_of(name)))
    assert len(now) >= len(plot.curves)
    assert len(now) == len(kept)
    for line, stored in zip(now, kept, strict=True):
        assert len(line) == len(stored)
        # a tenth of a point of an axis of some 300
        np.testing.assert_allclose(line, stored, atol=0.1)


def lines_of(svg):
    """Points of every drawn curve: numbers of the clipped paths."""
    paths = re.findall(r'<path d="([^"]*)" clip-path', svg)
    return [np.array(re.findall(r"-?\d+\.?\d*", path), dtype=float) for path in paths]


def test_that_the_index_leads_to_the_page():
    assert "(mechanisms.md)" in (DOCS / "index.md").read_text(encoding="utf-8")
