"""The process in which one plugin runs: ``python -m twinstudio.jobs.worker FOLDER``.

It reads the specification from the run's folder, obeys on standard input, speaks
on its first standard output, and lets the plugin have standard error for both.
It ends with `os._exit`, so that no thread of a plugin can hold it.
"""

import faulthandler
import os
import resource
import signal
import sys
import threading
from pathlib import Path

import msgspec

from twinstudio.jobs import mishap, stored
from twinstudio.jobs.context import WorkerContext
from twinstudio.jobs.execute import Execution
from twinstudio.jobs.loading import code_digest, load_class
from twinstudio.jobs.messages import (
    End,
    Entered,
    Message,
    Note,
    Order,
    Prepared,
    Progress,
    Ready,
    encode,
)
from twinstudio.jobs.record import FILE
from twinstudio.jobs.spec import JobSpec, scene_digest
from twinstudio.jobs.store import read_run
from twinstudio.model.errors import JobError
from twinstudio.model.params import make
from twinstudio.model.provenance import digest, provenance
from twinstudio.model.words import of_error
from twinstudio.plugin.context import Cancelled

SCRATCH = "scratch"
ORPHAN_SECONDS = 2.5


class Voice:
    """Sends messages to the runner, whatever the plugin does to its own output."""

    def __init__(self) -> None:
        self._fd = os.dup(1)
        os.dup2(2, 1)
        self._process = os.getpid()
        self._lock = threading.Lock()

    def say(self, message: Message) -> None:
        """Send `message`. A copy of this process that the plugin forked ends here."""
        if os.getpid() != self._process:
            os._exit(0)
        rest = memoryview(encode(message))
        with self._lock:
            while rest:
                rest = rest[os.write(self._fd, rest) :]


class Ear(threading.Thread):
    """Listens to the runner; `cancel` is set when it asks, or when it is gone."""

    def __init__(self) -> None:
        super().__init__(name="orders", daemon=True)
        self.cancel = threading.Event()
        self._fd = os.dup(0)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)  # a plugin that reads its input finds its end
        os.close(nothing)

    def run(self) -> None:
        """Obey until the pipe closes; then see to it that this process does not stay."""
        with os.fdopen(self._fd, "rb") as orders:
            for line in orders:
                if msgspec.json.decode(line, type=Order).do == "cancel":
                    self.cancel.set()
        self.cancel.set()
        threading.Event().wait(ORPHAN_SECONDS)
        os.killpg(0, signal.SIGKILL)


def main() -> None:
    """Run the job of the folder named on the command line."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    faulthandler.enable()
    voice, ear = Voice(), Ear()
    ear.start()
    voice.say(Ready())
    end = _outcome(Path(sys.argv[1]).resolve(), voice, ear.cancel)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:  # noqa: BLE001, S112 - the plugin closed it, or put its own there
            continue
    voice.say(end)
    os._exit(0)


def _outcome(folder: Path, voice: Voice, cancel: threading.Event) -> End:
    """Run the job and tell how it went; nothing that a plugin raises gets past."""
    spec = read_run(folder / FILE).spec
    execution = Execution(
        spec=spec,
        context=_context(spec, folder, voice, cancel),
        folder=folder,
        enter=lambda state: voice.say(Entered(state=state)),
        note=lambda text: voice.say(Note(text=mishap.one_line(text))),
    )
    error, trace = "", ""
    try:
        _run(execution, voice)
        if cancel.is_set():
            raise Cancelled  # noqa: TRY301 - one that swallowed it did not finish
    except BaseException as failure:  # noqa: BLE001 - the run's record tells of it
        if isinstance(failure, Cancelled) and cancel.is_set():
            return _end("cancelled", "it was cancelled", "", execution, folder)
        error, trace = mishap.in_words(failure, spec.plugin), mishap.trace(failure)
    return _end("failed" if error else "done", error, trace, execution, folder)


def _run(execution: Execution, voice: Voice) -> None:
    spec = execution.spec
    inputs = {name: given.digest for name, given in spec.inputs.items()}
    where = provenance(seed=spec.seed, inputs=inputs)
    voice.say(Prepared(provenance=where, plugin_digest=code_digest(spec.source)))
    _check_inputs(spec)
    os.chdir(execution.context.scratch)
    cls = load_class(spec.source)
    params = make(cls.params, spec.params, where=spec.plugin)
    execution.run(cls(), params)


def _context(spec: JobSpec, folder: Path, voice: Voice, cancel: threading.Event) -> WorkerContext:
    scratch = folder / SCRATCH
    scratch.mkdir(exist_ok=True)
    return WorkerContext(
        seed=spec.seed,
        inputs={name: Path(given.path) for name, given in spec.inputs.items()},
        scratch=scratch,
        cancel=cancel,
        report=lambda fraction, text: voice.say(
            Progress(fraction=fraction, message=mishap.one_line(text))
        ),
    )


def _check_inputs(spec: JobSpec) -> None:
    """Raise JobError naming the file whose content is not what the job was made for."""
    hint = "make the job anew to use what is there now"
    for name, given in spec.inputs.items():
        path = Path(given.path)
        if not path.exists():
            raise JobError(f"input '{name}' is gone: {path}", where=spec.plugin)
        if digest(path) != given.digest:
            raise JobError(
                f"input '{name}' has changed since the job was made: {path}",
                where=spec.plugin,
                hint=hint,
            )
    if spec.scene and scene_digest(Path(spec.scene), spec.kind) != spec.scene_digest:
        raise JobError(
            f"the scene has changed since the job was made: {spec.scene}",
            where=spec.plugin,
            hint=hint,
        )


def _end(state: str, error: str, trace: str, execution: Execution, folder: Path) -> End:
    """The last word, once the results are on disk: success is claimed last."""
    try:
        kept = stored.write(folder, execution.results, execution.files)
    except Exception as failure:  # noqa: BLE001 - the last word must be said
        why = mishap.disk(failure) if isinstance(failure, OSError) else of_error(failure)
        text = f"its results could not be kept: {why}"
        return End(state="failed", error="; ".join(filter(None, (error, text))), trace=trace)
    return End(
        state=state,  # type: ignore[arg-type]
        error=error,
        trace=trace,
        results=kept.records,
        results_file=kept.file,
        files=kept.files,
    )


if __name__ == "__main__":
    main()
