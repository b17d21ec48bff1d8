"""From a run to the scene: which patch, whether its trial allows it, and on it goes."""

from twinstudio.jobs.calibration import Trial, check_trial
from twinstudio.jobs.patching import chosen_patch
from twinstudio.jobs.store import Store
from twinstudio.model import patches
from twinstudio.model.results import Patch
from twinstudio.model.scene import Scene


def promote(
    store: Store,
    run: str,
    scene: Scene,
    *,
    name: str = "",
    result: int = 0,
    force: bool = False,
    say: str = "force=True promotes it all the same",
) -> tuple[int, Patch, Trial | None]:
    """Put a patch of `run` onto `scene`: its number, the patch, and its trial if it had one.

    scene: as written. name, result: which patch, as in `chosen_patch`. say: how to go
    on, told where a patch is refused. Raises JobError unless one patch is meant, and,
    without `force`, for one that made the twin worse or could not be simulated;
    SceneError for one that does not fit the scene.
    """
    number, patch = chosen_patch(store.results(run), run, name=name, result=result)
    trial = check_trial(store, run, number, force=force, say=say)
    patches.promote(scene, patch, run=run, result=number)
    return number, patch, trial
