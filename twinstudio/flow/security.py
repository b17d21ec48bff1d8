"""Who may listen and who may ask: loopback, CURVE keys, or explicitly nothing.

Keys are the files that ``zmq.auth.create_certificates(folder, name)`` writes:
``name.key`` (public) and ``name.key_secret``.
"""

import ipaddress
import re
from dataclasses import dataclass
from pathlib import Path

import zmq
import zmq.auth

from twinstudio.model.errors import LinkError

_ADDRESS = re.compile(r"^tcp://(\[[0-9a-fA-F:.%\w]+\]|[A-Za-z0-9_.\-]+):(\d{1,5})$")
ZAP = "inproc://zeromq.zap.01"


@dataclass(frozen=True, slots=True)
class Security:
    """How a connection is protected; the default is for one machine only.

    keys: secret key file of this end; turns encryption on.
    server: public key file of the endpoint a link talks to; links only.
    clients: folder of public key files of the clients an endpoint lets in; without
        it, whoever holds the endpoint's public key gets in. Endpoints only.
    insecure: listen on a network without any protection.
    """

    keys: Path | None = None
    server: Path | None = None
    clients: Path | None = None
    insecure: bool = False

    def check_bind(self, host: str) -> None:
        """Raises LinkError unless an endpoint may listen on `host` as things stand."""
        if self.clients is not None and self.keys is None:
            raise LinkError("a list of clients needs keys", hint="give the endpoint's secret key")
        if self.keys is None and not self.insecure and not is_loopback(host):
            raise LinkError(
                f"listening on '{host}' would let anyone on the network in",
                hint="give CURVE keys, or ask for an insecure endpoint explicitly",
            )

    def serve(self, socket: "zmq.Socket[bytes]") -> None:
        """Make a socket that is about to bind a CURVE server, if there are keys."""
        if self.keys is None:
            return
        public, secret = _load(self.keys, secret=True)
        socket.curve_publickey = public
        socket.curve_secretkey = secret
        socket.curve_server = True

    def join(self, socket: "zmq.Socket[bytes]") -> None:
        """Make a socket that is about to connect a CURVE client, if there are keys."""
        if self.server is None:
            if self.keys is not None:
                raise LinkError("keys need the endpoint's public key", hint="give its .key file")
            return
        socket.curve_serverkey, _ = _load(self.server, secret=False)
        if self.keys is not None:
            public, secret = _load(self.keys, secret=True)
        else:
            public, secret = zmq.curve_keypair()
        socket.curve_publickey = public
        socket.curve_secretkey = secret or b""

    def allowed(self) -> frozenset[bytes] | None:
        """Public keys (32 raw bytes) of the clients let in; None: not restricted."""
        if self.clients is None:
            return None
        if not self.clients.is_dir():
            raise LinkError("is no folder of client keys", where=str(self.clients))
        files = sorted(self.clients.glob("*.key"))
        return frozenset(zmq.utils.z85.decode(_load(file, secret=False)[0]) for file in files)


def is_loopback(host: str) -> bool:
    """Whether `host` can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def parse_address(address: str) -> tuple[str, int]:
    """Host and port of ``tcp://host:port``; raises LinkError."""
    match = _ADDRESS.match(address)
    if match is None or not 0 < int(match.group(2)) < 65536:
        raise LinkError(f"'{address}' is no address", hint="write tcp://HOST:PORT")
    return match.group(1), int(match.group(2))


def answer_zap(socket: "zmq.Socket[bytes]", allowed: frozenset[bytes]) -> None:
    """Answer one question of libzmq, whether a client may in (ZeroMQ RFC 27)."""
    frames = socket.recv_multipart()
    version, request = frames[0], frames[1]
    key = frames[6] if len(frames) > 6 and frames[5] == b"CURVE" else b""
    status, text = (b"200", b"OK") if key in allowed else (b"400", b"unknown key")
    socket.send_multipart([version, request, status, text, b"", b""])


def _load(path: Path, *, secret: bool) -> tuple[bytes, bytes | None]:
    try:
        public, private = zmq.auth.load_certificate(path)
    except (OSError, ValueError) as error:
        raise LinkError(f"is no key file: {error}", where=str(path)) from error
    if secret and private is None:
        raise LinkError("holds no secret key", where=str(path), hint="give the .key_secret file")
    return public, private
