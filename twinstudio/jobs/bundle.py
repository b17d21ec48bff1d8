"""A run as one zip, and back; nothing in a zip is trusted."""

import hashlib
import stat
import zipfile
from collections.abc import Mapping
from pathlib import Path

import msgspec

from twinstudio.jobs.files import replacing
from twinstudio.jobs.inputs import is_part
from twinstudio.jobs.mishap import NO_ROOM
from twinstudio.jobs.record import FILE, LOG
from twinstudio.jobs.stored import FOLDER, NAME
from twinstudio.model.errors import JobError
from twinstudio.model.provenance import sha256

MANIFEST = "manifest.json"
LARGEST = 8 * 2**30
"""Bytes that a run may unpack to."""
LARGEST_TEXT = 64 * 2**20
"""Bytes of the record, and of the log, which are read as a whole."""
CHUNK = 2**20


def pack(run: Path, file: Path, more: Mapping[str, Path] | None = None) -> Path:
    """Write the run folder `run` into the zip `file`, with the hash of every part.

    more: name in the zip -> file, what is taken along beside it.
    """
    parts = [p for p in (run / FILE, run / LOG, *sorted((run / FOLDER).glob("*"))) if p.is_file()]
    names = {p.relative_to(run).as_posix(): p for p in parts} | dict(more or {})
    manifest = {name: sha256(path) for name, path in names.items()}
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with replacing(file) as part, zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as out:
            out.writestr(MANIFEST, msgspec.json.encode(manifest))
            for name, path in names.items():
                out.write(path, name)
    except OSError as error:
        raise JobError(f"cannot be written: {error.strerror}", where=str(file)) from error
    return file


def unpack(file: Path, into: Path) -> None:
    """Take the parts of the zip `file` into the empty folder `into`.

    Raises JobError for a part that is no part of a run, such as one that would
    leave the folder, and for one whose content does not have its hash.
    """
    where = str(file)
    try:
        with zipfile.ZipFile(file) as source:
            infos = _checked(source, where)
            manifest = _manifest(source, infos, where)
            for name, known in manifest.items():
                if _written(source, infos[name], into / name) != known:
                    raise JobError(f"{name} does not have the hash it was packed with", where=where)
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError) as error:
        raise JobError(f"is no sound zip: {error}", where=where) from error
    except OSError as error:
        raise JobError(f"cannot be read: {error.strerror}", where=where) from error


def _checked(source: zipfile.ZipFile, where: str) -> dict[str, zipfile.ZipInfo]:
    infos: dict[str, zipfile.ZipInfo] = {}
    for info in source.infolist():
        name = info.filename
        if not (name in (FILE, LOG, MANIFEST) or NAME.match(name) or is_part(name)):
            raise JobError(f"'{name}' is no part of a run", where=where)
        mode = info.external_attr >> 16
        if name in infos or (mode and stat.S_IFMT(mode) not in (0, stat.S_IFREG)):
            raise JobError(f"'{name}' is there twice, or is no file", where=where)
        if name in (FILE, LOG) and info.file_size > LARGEST_TEXT:
            raise JobError(f"'{name}' has more than {LARGEST_TEXT / 2**20:.0f} MiB", where=where)
        infos[name] = info
    if sum(info.file_size for info in infos.values()) > LARGEST:
        raise JobError(f"would unpack to more than {LARGEST / 2**30:.0f} GiB", where=where)
    return infos


def _manifest(
    source: zipfile.ZipFile, infos: dict[str, zipfile.ZipInfo], where: str
) -> dict[str, str]:
    if MANIFEST not in infos or infos[MANIFEST].file_size > 2**24:
        raise JobError("is no exported run: it has no manifest", where=where)
    try:
        manifest = msgspec.json.decode(source.read(MANIFEST), type=dict[str, str])
    except msgspec.MsgspecError as error:
        raise JobError(f"its manifest cannot be read: {error}", where=where) from error
    if manifest.keys() != infos.keys() - {MANIFEST} or FILE not in manifest:
        raise JobError("its manifest does not list what is in it", where=where)
    return manifest


def _written(source: zipfile.ZipFile, info: zipfile.ZipInfo, to: Path) -> str:
    """As `_extract`; raises JobError where the part finds no place."""
    try:
        return _extract(source, info, to)
    except OSError as error:
        what = f"{info.filename:.200} cannot be taken in: {error.strerror}"
        hint = "make room" if error.errno in NO_ROOM else ""
        raise JobError(what, where=str(source.filename), hint=hint) from error


def _extract(source: zipfile.ZipFile, info: zipfile.ZipInfo, to: Path) -> str:
    """Write one part; its SHA-256."""
    total = hashlib.sha256()
    to.parent.mkdir(parents=True, exist_ok=True)
    with source.open(info) as stream, to.open("xb") as out:
        while data := stream.read(CHUNK):
            total.update(data)
            out.write(data)
    return total.hexdigest()
