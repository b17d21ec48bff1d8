"""A folder of metrics, sound and otherwise, and a pair to measure."""

from pathlib import Path

import numpy as np

from twinstudio.model.pair import Pair
from twinstudio.model.signals import Layout, joint_signals
from twinstudio.plugin.catalog import Catalog, Places, open_catalog

CODE = """
# /// twinstudio-plugin
# api = 1
# version = "1.5"
# [[plugins]]
# id = "{id}"
# kind = "metric"
# title = "Metric {name}"
# help = "Tries {name}"
# ///
import os, signal, sys, time
from typing import Annotated

import numpy as np
{head}
from twinstudio.plugin import api


class Params(api.Params, frozen=True):
    width: Annotated[float, api.si("m", low=0.0, high=1.0, about="A width")] = 0.02
    mode: Annotated[str, api.about("A word")] = "a"


class Tried(api.Metric[Params]):
    id = "{id}"
    params = Params

    def measure(self, pair, params):
        {body}


@api.implements
def metrics():
    return [Tried]
"""
RMS = (
    "return [api.Scalar(name='rms of twin', unit='m', low=0.0, high=9.0, note=params.mode,"
    " value=float(np.sqrt(np.nanmean(pair.gap**2))) + params.width)]"
)
BODIES = {
    "sound": RMS,
    "other": RMS,
    "raises": "raise ValueError('no such\\njoint')",
    "typed": "return {'rms': 1.0}",
    "items": "return [1.0]",
    "nothing": "pass",
    "nan": "return [api.Scalar(name='rms', value=float('nan'), unit='m')]",
    "unit": "return [api.Scalar(name='rms', value=1.0, unit='furlong')]",
    "exits": "sys.exit(3)",
    "dies": "os.kill(os.getpid(), signal.SIGSEGV)",
    "leaves": "os._exit(0)",
    "hangs": "time.sleep(600)",
    "holds": "sum(range(10**12))  # one call that never lets go of the interpreter",
    "forks": "os.fork(); return [api.Scalar(name='rms', value=1.0, unit='m')]",
    "prints": "print('x' * 10**6); return []",
    "empty": "return []",
    "rich": (
        "return [api.Scalar(name='a', value=1.0, unit='N m'),"
        " api.Table(name='by joint', columns=('joint', 'gap'), units=('', 'rad'),"
        " rows=(('<j1>', 0.5), ('j2', None))),"
        " api.Series(name='curve', x=(0.0, 1.0, 2.0), y=(1.0, float('nan'), 3.0),"
        " x_unit='Hz', y_unit='rad')]"
    ),
}
HEADS = {"broken": "import nowhere_to_be_found", "slow": "import time; time.sleep(600)"}


def metrics_in(folder: Path, *names: str) -> Path:
    """Write the metrics ``try.NAME`` into `folder`."""
    folder.mkdir(exist_ok=True)
    for name in names:
        body, head = BODIES.get(name, RMS), HEADS.get(name, "")
        text = CODE.format(id=f"try.{name}", name=name, body=body, head=head)
        (folder / f"{name}.py").write_text(text)
    return folder


def catalog_of(folder: Path, *names: str, **more: object) -> Catalog:
    """A catalog of those metrics alone."""
    metrics_in(folder, *names)
    return open_catalog(Places(folders=(str(folder),), installed=False, **more))  # type: ignore[arg-type]


def pair_of(samples: int = 100, gap: float = 0.5) -> Pair:
    """Twin and cell of two joints, `gap` apart."""
    layout = Layout(joint_signals(("j1", "j2"), kinds=("joint.position",)))
    cell = np.zeros((samples, 2))
    return Pair(layout, np.arange(samples, dtype=np.int64) * 10**7, cell + gap, cell, 3.0)
