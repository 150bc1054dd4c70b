"""Which resident server a command uses, and who gets its token: what `make up` recorded, without a server."""

import fcntl
import io
import json
import socket
from pathlib import Path

import pytest


def test_a_command_uses_a_resident_server_of_its_own_output_only(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from scripts.spark import remote_address

    address = "sc://localhost:1/;token=known"
    record = tmp_path / "server.json"
    record.write_text(json.dumps({"pid": 1, "target": "cluster", "address": address}))
    for name, value in {"LAKEHOUSE_DIR": str(tmp_path), "LAKEHOUSE_TARGET": "local", "SPARK_REMOTE": ""}.items():
        monkeypatch.setenv(name, value)
    with record.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)  # as the server does while it lives
        assert not remote_address()
        monkeypatch.setenv("LAKEHOUSE_TARGET", "cluster")
        assert remote_address() == address


def test_who_took_the_port_of_the_last_server_is_sent_no_token_that_is_used_again(project: Path) -> None:
    from scripts.server import _address_before

    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        last = json.dumps({"address": f"sc://localhost:{port}/;token=known"})
        other_port, token = _address_before(io.StringIO(last))
        assert other_port != port and token != "known"
    assert _address_before(io.StringIO(last)) == (port, "known")
