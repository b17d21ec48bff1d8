"""Manifests: read statically, refused in one line that names file, key and expectation."""

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plugin_helpers import distribute, manifest

from twinstudio.model.errors import PluginError
from twinstudio.plugin.hooks import HOOK_OF
from twinstudio.plugin.kinds import KINDS
from twinstudio.plugin.manifest import Installed, Kind, Offer, offers_of, read


def changed(old: str, new: str) -> str:
    text = manifest("acme_reach", "acme.reach")
    assert old in text
    return text.replace(old, new)


def test_that_a_manifest_says_all_that_a_list_shows(site: Path) -> None:
    package = distribute(site, "acme-reach", version="2.1")
    (offer,) = Installed([str(site)]).offers()
    assert offer == Offer(
        id="acme.reach",
        origin="acme-reach",
        version="2.1",
        kind="metric",
        title="A title",
        help="A help",
        module="acme_reach.plugin",
        place=package,
    )


def test_that_listing_imports_nothing(site: Path) -> None:
    package = distribute(site, "acme-reach")
    (package / "__init__.py").write_text("raise RuntimeError")
    Installed([str(site)]).offers()
    assert not [name for name in sys.modules if name.startswith("acme")]


def test_that_a_package_of_an_editable_install_is_found_on_the_path(site: Path) -> None:
    elsewhere = site.parent / "elsewhere"
    package = distribute(site, "acme-reach")
    elsewhere.mkdir()
    (site / "acme_reach-1.0.dist-info").rename(elsewhere / "acme_reach-1.0.dist-info")
    (offer,) = Installed([str(elsewhere)]).offers()
    assert (offer.id, offer.place, offer.problem) == ("acme.reach", package, "")
    assert "acme_reach" not in sys.modules


def test_that_of_two_distributions_of_one_name_the_first_on_the_path_counts(site: Path) -> None:
    distribute(site, "acme-reach", version="1.0")
    distribute(site.parent / "later", "Acme_Reach".lower(), version="2.0")
    offers = Installed([str(site), str(site.parent / "later")]).offers()
    assert [offer.version for offer in offers] == ["1.0"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (changed("api = 1", "api = 2"), r"key 'api': written for plugin API 2, this .* has 1"),
        (changed("api = 1\n", ""), r"key 'api' is missing"),
        (changed("api = 1", "api = '1'"), r"key 'api': expected int, got str"),
        ("api = 1\nplugins = []", r"key 'plugins': expected array of length >= 1"),
        (changed("acme.reach", "Acme Reach"), r"key 'plugins\[0\]\.id': 'Acme Reach' is no plugin"),
        (changed('"metric"', '"metrik"'), r"\[0\]\.kind': .*'metrik'; kinds are bridge, m"),
        (changed("title =", "titel ="), r"unknown key 'plugins\[0\]\.titel'; known keys here: id"),
        (changed('help = "A help"', 'help = ""'), r"key 'plugins\[0\]\.help': expected str of"),
        (changed('"acme_reach.plugin"', '"os"'), r"\.module': expected a module of package 'acme_"),
        (manifest("acme_reach", "a.b", "a.b"), r"key 'plugins\[1\]\.id': 'a\.b' is taken above"),
        (changed("api = 1", "api = 1\nversion = '2'"), r"key 'version' is for single files"),
        ("api = ", r"is no valid TOML"),
        (f"api = {'[' * 9999}", r"is no valid TOML: it is nested too deeply"),
        (f"api = {'1' * 9999}", r"is no valid TOML: .*4300 digits"),
        (changed("acme.reach", f"acme.{'r' * 99}"), r"is no plugin id; .*100 letters at most"),
        (changed('"A help"', r'"\u001b[31m"'), r"key 'plugins\[0\]\.help': holds control char"),
        ("api = 1\nplugins = 3", r"key 'plugins': expected array, got int"),
    ],
)
def test_that_a_wrong_manifest_is_refused_in_one_line(text: str, complaint: str) -> None:
    with pytest.raises(PluginError, match=complaint) as caught:
        read(text, "the/file.toml", package="acme_reach")
    assert str(caught.value).startswith("the/file.toml: ")
    assert "\n" not in str(caught.value)


def test_that_every_plugin_of_a_wrong_manifest_is_listed_with_the_problem() -> None:
    text = manifest("acme_reach", "acme.one", "acme.two", api=9)
    offers = offers_of(text, "f.toml", Offer(id="acme", origin="acme", module="acme_reach"))
    assert [offer.id for offer in offers] == ["acme.one", "acme.two"]
    assert all("written for plugin API 9" in offer.problem for offer in offers)


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ("acme_reach.inner", "give the name of a top-level package"),
        ("acme_nowhere", "there is no package 'acme_nowhere'"),
        ("json", "package 'json' has no twinstudio-plugin.toml"),
    ],
)
def test_that_a_wrong_entry_point_is_listed(site: Path, value: str, complaint: str) -> None:
    distribute(site, "acme-reach", value=value)
    (offer,) = Installed([str(site)]).offers()
    assert offer.id == "acme-reach"
    assert complaint in offer.problem


def test_that_a_damaged_distribution_hides_no_other(site: Path) -> None:
    distribute(site, "acme-reach")
    distribute(site, "other-one", toml=manifest("other_one", "other.one"))
    (site / "acme_reach-1.0.dist-info" / "entry_points.txt").write_text(
        "[twinstudio.plugins]\nno equals sign\n"
    )
    by_id = {offer.id: offer for offer in Installed([str(site)]).offers()}
    assert "cannot be read" in by_id["acme-reach"].problem
    assert by_id["other.one"].problem == ""


def test_that_kinds_hooks_and_manifests_know_the_same_kinds() -> None:
    assert list(KINDS) == list(HOOK_OF) == list(Kind.__args__)


@given(st.text())
def test_that_any_text_gives_offers_and_no_exception(text: str) -> None:
    offers = offers_of(text, "f.toml", Offer(id="acme", origin="acme", module="acme"))
    assert offers


@given(
    st.dictionaries(
        st.sampled_from(["api", "plugins", "version", "x"]),
        st.one_of(
            st.integers(0, 3), st.booleans(), st.text("ab\n", max_size=3), st.just([1]), st.just([])
        ).map(lambda value: str(value).lower() if isinstance(value, bool) else repr(value)),
    )
)
def test_that_any_keys_give_offers_and_no_exception(keys: dict[str, str]) -> None:
    text = "".join(f"{key} = {value}\n" for key, value in keys.items())
    offers = offers_of(text, "f.toml", Offer(id="acme", origin="acme", module="acme"))
    assert all(offer.problem for offer in offers)
