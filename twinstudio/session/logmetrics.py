"""Metrics of plugins on a whole log, as a command line asks for them."""

import re
from collections.abc import Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from msgspec import structs

from twinstudio.model.errors import PluginError
from twinstudio.model.measured import Measured
from twinstudio.model.pair import Pair
from twinstudio.plugin.catalog import Catalog
from twinstudio.session.measuring import Measuring

LIMIT_SECONDS = 300.0
_BETWEEN = re.compile(r",(?=\s*[A-Za-z_]\w*\s*=)")


def parsed(text: str) -> tuple[str, list[str]]:
    """``ID:name=value,...`` as the id and its assignments; values may hold commas."""
    plugin, _, rest = text.partition(":")
    return plugin.strip(), [word.strip() for word in _BETWEEN.split(rest)] if rest.strip() else []


class LogMetrics:
    """Metrics that are loaded before the log is read, so that a typing error costs no time."""

    def __init__(self, catalog: Catalog, wanted: Sequence[str]) -> None:
        """wanted: each ``ID`` or ``ID:name=value,...``.

        Raises PluginError for an unknown or disabled plugin or one that is no metric,
        ParamsError for parameters that do not fit. One that cannot be imported has failed.
        """
        self._measuring: list[tuple[Measuring, Measured]] = []
        with ExitStack() as kept:
            begun = [kept.enter_context(Measuring(catalog, *parsed(text))) for text in wanted]
            for measuring in begun:
                self._measuring.append((measuring, _loaded(measuring)))
            self._kept = kept.pop_all()

    def measure(self, pair: Pair, *, limit: float = LIMIT_SECONDS) -> tuple[Measured, ...]:
        """What each says of `pair`, in the order in which they were asked for.

        limit: longest time for each [s]. What fails is told in its place.
        """
        return tuple(
            loaded if loaded.error else measuring.measure(pair, limit=limit)
            for measuring, loaded in self._measuring
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._kept.close()


def _loaded(measuring: Measuring) -> Measured:
    try:
        return measuring.ready()
    except PluginError as error:
        hint = f"; {error.hint}" if error.hint else ""
        return structs.replace(measuring.blank, error=f"{error.what}{hint}")
