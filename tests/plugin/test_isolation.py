"""Every way in which a stranger's module can be wrong: one reason each, nothing else affected."""

import sys
from pathlib import Path

import pytest
from plugin_helpers import distribute, manifest, metric_code

from twinstudio.model.errors import PluginError
from twinstudio.plugin.catalog import Catalog
from twinstudio.plugin.choices import Choices
from twinstudio.plugin.manifest import Installed

GOOD = metric_code("acme.reach")


def replaced(*pairs: tuple[str, str]) -> str:
    code = GOOD
    for old, new in pairs:
        assert old in code, old
        code = code.replace(old, new)
    return code


FAULTS = {
    "bad import": ("import nowhere_to_be_found", "cannot be imported: ModuleNotFoundError"),
    "syntax": ("def (:", "cannot be imported: SyntaxError"),
    "raises on import": ("1 / 0", "cannot be imported: ZeroDivisionError: division by zero"),
    "exits on import": ("import sys\nsys.exit(3)", "cannot be imported: SystemExit: 3"),
    "misspelt hook": (
        replaced(("def metrics", "def metricss")),
        "implements no hook 'metrics'; it has 'metricss', which is no hook: call that 'metrics'",
    ),
    "hook not marked": (
        replaced(("@api.implements\n", "")),
        "mark its function 'metrics' with @implements",
    ),
    "no hook": ("x = 1", r"write '@implements def metrics\(\)'"),
    "hook takes something": (
        replaced(("def metrics()", "def metrics(settings)")),
        "hook 'metrics' does not fit: .*settings",
    ),
    "hook raises": (replaced(("return [AcmeReach]", "raise ValueError('no')")), "raised ValueErr"),
    "hook exits": (replaced(("return [AcmeReach]", "raise SystemExit")), "raised SystemExit"),
    "hook returns no list": (
        replaced(("return [AcmeReach]", "return AcmeReach")),
        "hook 'metrics' must return a list of classes, got ABCMeta",
    ),
    "hook returns nothing": (replaced(("return [AcmeReach]", "return []")), "gives none"),
    "another id": (
        replaced(('id = "acme.reach"', 'id = "acme.other"')),
        r'no Metric with id = "acme\.reach"; its hook .metrics. gives acme\.other',
    ),
    "no id": (replaced(('    id = "acme.reach"\n', "")), "gives <class .* without id"),
    "one id twice": (replaced(("[AcmeReach]", "[AcmeReach, AcmeReach]")), "more than one class"),
    "another kind": (
        replaced(
            ("api.Metric[Params]):", "api.Command[Params]):"),
            ("def measure(self, pair: api.Pair", "def run(self, context: api.JobContext"),
        ),
        "expected a subclass of Metric, got AcmeReach",
    ),
    "no method": (
        replaced(("def measure", "def measures")),
        r"AcmeReach has no method 'measure\(pair, params\)'",
    ),
    "method takes less": (
        replaced(("pair: api.Pair, params: Params)", "pair: api.Pair)")),
        r"AcmeReach.measure must take \(self, pair, params\)",
    ),
    "no params": (replaced(("    params = Params\n", "")), "params must be a subclass of Params"),
    "params of another kind": (replaced(("params = Params", "params = dict")), "got dict"),
    "parameter without help": (
        replaced(('Annotated[str, api.about("Signal that is compared")]', "str")),
        "parameter 'signal' of Params has no help text",
    ),
    "default out of bounds": (
        replaced(
            (
                'signal: Annotated[str, api.about("Signal that is compared")] = "joint.position"',
                'mass: Annotated[float, api.si("kg", low=0.0, about="Mass")] = -1.0',
            )
        ),
        r"default -1\.0 of 'mass' is out of bounds",
    ),
    "default that is no choice": (
        replaced(
            (
                'signal: Annotated[str, api.about("Signal that is compared")] = "joint.position"',
                'mode: Annotated[Literal["a", "b"], api.about("Mode")] = "c"',
            ),
            ("import Annotated", "import Annotated, Literal"),
        ),
        r"default c of 'mode' is out of bounds",
    ),
    "raises what is no Exception": (
        "class Odd(BaseException): pass\nraise Odd('on import')",
        "cannot be imported: Odd: on import",
    ),
    "an exception without a text": (
        "class Odd(Exception):\n    __str__ = None\nraise Odd",
        "cannot be imported: Odd, whose text cannot be had",
    ),
    "an exception with a text for a terminal": (
        r"raise ValueError('\x1b[31mred\n\ud800')",
        r"cannot be imported: ValueError: +\[31mred",
    ),
    "hook returns what cannot be looked at": (
        replaced(
            (
                "return [AcmeReach]",
                "class Odd:\n        __getattr__ = __repr__ = None\n    return [Odd()]",
            )
        ),
        "its class cannot be looked at: TypeError",
    ),
    "needs arguments": (
        replaced(
            ("    params = Params\n", "    params = Params\n    def __init__(self, a): pass\n")
        ),
        "must be made without arguments: missing a required argument: 'a'",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_that_a_fault_is_one_line_and_hits_nobody_else(site: Path, fault: str) -> None:
    code, complaint = FAULTS[fault]
    distribute(site, "acme-reach", code=code)
    distribute(
        site, "other-one", toml=manifest("other_one", "other.one"), code=metric_code("other.one")
    )
    catalog = Catalog([Installed([str(site)])], Choices())
    with pytest.raises(PluginError, match=complaint) as caught:
        catalog.load("acme.reach")
    assert "\n" not in str(caught.value)
    entry = catalog.entry("acme.reach")
    assert entry.state == "failed"
    assert "\n" not in entry.reason
    assert entry.trace
    assert catalog.load("other.one")
    assert catalog.entry("other.one").state == "enabled"


def test_that_a_faulty_plugin_spares_the_others_of_its_module(site: Path) -> None:
    code = GOOD + "\n\n@api.implements\ndef randomizer():\n    return []\n"
    toml = manifest("acme_reach", "acme.reach")
    toml += manifest("acme_reach", "acme.draw", kind="randomizer").partition("\n")[2]
    distribute(site, "acme-reach", code=code, toml=toml)
    catalog = Catalog([Installed([str(site)])], Choices())
    assert catalog.load("acme.reach")
    assert catalog.stray_hooks("acme.reach") == [
        "'randomizer' is no hook; did you mean 'randomizers'?"
    ]
    with pytest.raises(PluginError, match=r"it has 'randomizer'.*call that 'randomizers'"):
        catalog.load("acme.draw")


def test_that_a_hook_may_have_another_function_name(site: Path) -> None:
    code = replaced(
        ("@api.implements\ndef metrics", '@api.implements(specname="metrics")\ndef ours')
    )
    distribute(site, "acme-reach", code=code)
    assert Catalog([Installed([str(site)])], Choices()).load("acme.reach")


def test_that_a_module_from_elsewhere_is_not_run_in_its_place(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    distribute(site, "acme-reach")
    distribute(site.parent / "shadow", "acme-reach")
    monkeypatch.syspath_prepend(str(site.parent / "shadow"))
    catalog = Catalog([Installed([str(site)])], Choices())
    with pytest.raises(PluginError, match=r"comes from .*shadow.*; two packages have the same nam"):
        catalog.load("acme.reach")


DEADLY = {
    "segmentation fault": (
        "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)",
        "was killed by SIGSEGV",
    ),
    "exit without asking": ("import os\nos._exit(7)", "ended the process with status 7"),
    "exit as if all were well": ("import os\nos._exit(0)", "ended the process with status 0"),
    "never ends": ("import time\nwhile True: time.sleep(0.1)", "did not end within 3 s"),
    "interrupts": ("raise KeyboardInterrupt", "raised KeyboardInterrupt, though nobody"),
    "raises what is no Exception": ("class Odd(BaseException): pass\nraise Odd", "imported: Odd"),
    "text of half a character": (r"raise ValueError('\ud800')", "cannot be imported: ValueError"),
    "ordinary fault": ("1 / 0", "ZeroDivisionError: division by zero"),
}


@pytest.mark.parametrize("fault", DEADLY)
def test_that_a_deadly_import_is_known_before_it_is_made(site: Path, fault: str) -> None:
    code, complaint = DEADLY[fault]
    distribute(site, "acme-reach", code=f"print('last words', flush=True)\n{code}")
    catalog = Catalog([Installed([str(site)])], Choices())
    entry = catalog.probe("acme.reach", timeout=3.0)
    assert entry.state == "failed"
    assert complaint in entry.reason
    assert entry.trace
    with pytest.raises(PluginError, match=complaint):
        catalog.load("acme.reach")


def test_that_a_probe_leaves_no_process_behind(site: Path) -> None:
    code = "import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', 'input()'])\n"
    distribute(site, "acme-reach", code=code + GOOD)
    catalog = Catalog([Installed([str(site)])], Choices())
    assert catalog.probe("acme.reach").state == "unused"


def test_that_a_sound_plugin_passes_the_probe_and_is_not_imported_here(site: Path) -> None:
    distribute(site, "acme-reach", code="print('x' * 10**6)\n" + GOOD)
    catalog = Catalog([Installed([str(site)])], Choices())
    assert catalog.probe("acme.reach").state == "unused"
    assert "acme_reach" not in sys.modules
    assert catalog.load("acme.reach")
