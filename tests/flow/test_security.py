"""Nobody gets in from the network unless keys or an explicit word let them."""

import numpy as np
import pytest
import zmq.auth
from wire_helpers import LAYOUT, until

from twinstudio.flow.link import Link
from twinstudio.flow.security import Security, is_loopback, parse_address
from twinstudio.flow.serve import Endpoint
from twinstudio.model.errors import LinkError


def make(**other):
    return Endpoint(role="cell", name="c", layout=LAYOUT, rate=100.0, **other)


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    """Key files of an endpoint, a friend and a stranger; folder of friends."""
    folder = tmp_path_factory.mktemp("keys")
    (folder / "friends").mkdir()
    for name in ("endpoint", "friend", "stranger"):
        zmq.auth.create_certificates(folder, name)
    (folder / "friends" / "friend.key").write_bytes((folder / "friend.key").read_bytes())
    return folder


def streams(endpoint, security):
    with Link(endpoint.control, security=security) as link:
        link.wait(10.0)
        until(
            lambda: (
                endpoint.publish(np.zeros(1, dtype=np.int64), np.zeros((1, 2))) >= 0
                and link.health().received
            )
        )


def stays_outside(endpoint, security):
    with Link(endpoint.control, security=security) as link, pytest.raises(LinkError):
        link.wait(0.7)


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.5", "robot.local", "*", "::"])
def test_that_listening_on_a_network_needs_keys_or_a_word(host):
    with pytest.raises(LinkError, match="CURVE keys"):
        make(host=host)


def test_that_an_insecure_endpoint_must_be_asked_for():
    with make(host="0.0.0.0", security=Security(insecure=True)) as endpoint:
        port = endpoint.control.rsplit(":", 1)[1]
        with Link(f"tcp://127.0.0.1:{port}") as link:
            link.wait(10.0)


def test_that_who_has_the_endpoints_key_gets_in_and_nobody_else(keys):
    with make(security=Security(keys=keys / "endpoint.key_secret")) as endpoint:
        streams(endpoint, Security(server=keys / "endpoint.key"))
        stays_outside(endpoint, Security())
        stays_outside(endpoint, Security(server=keys / "stranger.key"))


def test_that_only_listed_clients_get_in(keys):
    security = Security(keys=keys / "endpoint.key_secret", clients=keys / "friends")
    server = keys / "endpoint.key"
    with make(security=security) as endpoint:
        streams(endpoint, Security(keys=keys / "friend.key_secret", server=server))
        stays_outside(endpoint, Security(keys=keys / "stranger.key_secret", server=server))
        stays_outside(endpoint, Security(server=server))


def test_that_key_files_that_are_none_are_named(keys, tmp_path):
    with pytest.raises(LinkError, match=r"nothing\.key_secret"):
        make(security=Security(keys=tmp_path / "nothing.key_secret"))
    with pytest.raises(LinkError, match="no secret key"):
        make(security=Security(keys=keys / "endpoint.key"))
    with pytest.raises(LinkError, match="folder of client keys"):
        make(security=Security(keys=keys / "endpoint.key_secret", clients=tmp_path / "none"))
    with pytest.raises(LinkError, match="needs keys"):
        make(security=Security(clients=keys / "friends"))
    with pytest.raises(LinkError, match="public key"):
        Link("tcp://127.0.0.1:9", security=Security(keys=keys / "friend.key_secret"))
    (tmp_path / "odd.key").write_text("not a key\n")
    with pytest.raises(LinkError, match=r"odd\.key"):
        Link("tcp://127.0.0.1:9", security=Security(server=tmp_path / "odd.key"))


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("localhost", True),
        ("::1", True),
        ("[::1]", True),
        ("0.0.0.0", False),
        ("10.0.0.1", False),
        ("localhost.evil.example", False),
    ],
)
def test_what_counts_as_this_machine(host, local):
    assert is_loopback(host) == local


def test_that_addresses_are_taken_apart():
    assert parse_address("tcp://robot-1.local:5555") == ("robot-1.local", 5555)
    assert parse_address("tcp://[::1]:80") == ("[::1]", 80)
