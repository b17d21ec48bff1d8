"""Which patch of a run is meant: by its number among the results, or by its name."""

from collections.abc import Sequence

from twinstudio.model.errors import JobError
from twinstudio.model.results import Patch, Result


def patches_in(results: Sequence[Result]) -> dict[int, Patch]:
    """Every patch by its number: its place among all results of the run, from 1."""
    return {k: result for k, result in enumerate(results, 1) if isinstance(result, Patch)}


def chosen_patch(
    results: Sequence[Result], run: str, *, name: str = "", result: int = 0
) -> tuple[int, Patch]:
    """Number and patch; `result` is the number, 0 for the only one (called `name`).

    Raises JobError, listing what there is, unless exactly one patch is meant.
    """
    found = patches_in(results)
    chosen = {
        number: patch
        for number, patch in found.items()
        if name in ("", patch.name) and result in (0, number)
    }
    if len(chosen) == 1:
        return next(iter(chosen.items()))
    if not found:
        raise JobError(f"run {run} found no patch", hint="choose another run")
    hint = "its patches: " + ", ".join(f"{number} {patch.name}" for number, patch in found.items())
    if chosen:
        what = f"run {run} has {len(chosen)} patches to choose from"
        raise JobError(what, hint=f"{hint}; say which by its number, e.g. {next(iter(chosen))}")
    meant = " ".join(filter(None, (str(result or ""), f"'{name}'" if name else "")))
    raise JobError(f"run {run} has no patch {meant}", hint=hint)
