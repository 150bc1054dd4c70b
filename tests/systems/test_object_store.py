"""EVENTS in an object store (moto's): each record lands once, and what is wrong is said in a line."""

import bz2
import gzip
import importlib
import json
import sys
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
import zstandard
from clusters import LOOPBACK, object_store
from conftest import REPOSITORY, Lakehouse

from scripts import ledger, stores
from scripts.bronze import Landed
from scripts.errors import LakehouseError, UsageError
from scripts.files import event_files

pytestmark = pytest.mark.soak  # tests/pure/test_stores.py shows most of it without a server
FOLDER = "s3://lake/events"


def free_port() -> int:
    sys.path.append(str(REPOSITORY / "tests" / "capture"))
    port: int = importlib.import_module("databases").free_port()
    return port


class Bucket:
    """What writes into the store."""

    def __init__(self) -> None:
        self._store = stores._store()

    def put(self, name: str, content: str | bytes) -> str:
        """Write an object into the folder; gives its URI."""
        with self._store.open_output_stream(f"lake/events/{name}", compression=None) as file:
            file.write(content.encode() if isinstance(content, str) else content)
        return f"{FOLDER}/{name}"

    def delete(self, uri: str) -> None:
        self._store.delete_file(uri.removeprefix("s3://"))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with object_store(tmp_path_factory.mktemp("store"), free_port()) as environment:
        yield environment


@pytest.fixture
def bucket(store: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Bucket:
    for name, value in store.items():
        if name != "LAKEHOUSE_WAREHOUSE":
            monkeypatch.setenv(name, value)
    return Bucket()


def lines(*numbers: int) -> str:
    """Bare values: without coordinates only what is known of the object keeps them from landing twice."""
    return "".join(json.dumps({"n": number}) + "\n" for number in numbers)


def landed(lakehouse: Lakehouse, events: str = FOLDER) -> Landed:
    found: Landed = lakehouse.land("stored", events)
    return found


def test_each_record_of_a_folder_of_objects_lands_once(
    lakehouse: Lakehouse, bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = bucket.put("a.jsonl", lines(1, 2))
    for name in ("_SUCCESS", ".part", "_temporary/0.jsonl"):
        bucket.put(name, lines(0))
    assert landed(lakehouse).records == 2
    assert landed(lakehouse) == landed(lakehouse, first) == landed(lakehouse, f"{FOLDER}/*.jsonl") == Landed()

    bucket.put("a.jsonl", lines(1, 2, 3) + '{"n":')
    grown = landed(lakehouse)
    assert grown.records == 1 and "5 bytes at the end are no complete record" in grown.notes[0]

    packed = gzip.compress(lines(5).encode()), bz2.compress(lines(6).encode()), zstandard.compress(lines(7).encode())
    for name, content in zip(("deep/5 é+%20.gz", "deep/6", "deep/7"), packed, strict=True):
        bucket.put(name, content)
    assert landed(lakehouse, "s3://lake/").records == 3

    copy, local = bucket.put("copy", packed[1]), tmp_path / "copy"
    local.write_bytes(packed[2])
    for path, original in ((copy, "6"), (str(local), "7")):
        note = f"{path}: same content as {FOLDER}/deep/{original}, which has landed; skipped"
        assert landed(lakehouse, path) == Landed(notes=[note])

    bucket.put("a.jsonl", lines(8, 9, 10, 11))
    note = f"{first}: the file was replaced since it was landed; all of it is landed again"
    replaced = landed(lakehouse)
    assert (replaced.records, replaced.notes) == (4, [note])

    bucket.put("a.jsonl", lines(8, 9, 10, 11, 12))
    with monkeypatch.context() as patch, pytest.raises(ZeroDivisionError):  # the loader dies between its commits
        patch.setattr(ledger, "write", lambda *_: 1 / 0)
        landed(lakehouse)
    assert landed(lakehouse).records == 0

    rows = lakehouse.sql("select file, value from bronze.stored")
    assert sorted(json.loads(row[1])["n"] for row in rows) == [1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12]
    assert {row[0] for row in rows} == {first, *(f"{FOLDER}/deep/{name}" for name in ("5 é+%20.gz", "6", "7"))}


class Refusal(BaseHTTPRequestHandler):
    """Requests without a signature are refused, as Amazon's store does; moto's fails."""

    def do_HEAD(self) -> None:
        self.send_response(500 if self.headers["Authorization"] else 403)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def check_keys(store: dict[str, str], after: bytes) -> None:
    """Have moto refuse keys that it does not know, after so many requests."""
    address, kind = f"{store['LAKEHOUSE_S3_ENDPOINT']}/moto-api/reset-auth", {"Content-Type": "text/plain"}
    urllib.request.urlopen(urllib.request.Request(address, after, kind)).close()


def test_what_an_object_store_refuses_is_named_and_no_secret(
    bucket: Bucket, store: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(events: str = FOLDER, kind: type[LakehouseError] = UsageError) -> str:
        with pytest.raises(kind) as error:
            event_files(events)
        assert store["AWS_SECRET_ACCESS_KEY"] not in str(error.value)
        return str(error.value)

    name = bucket.put("short-lived", lines(1))
    for missing in ("s3://nosuch", "s3://nosuch/folder", "s3://nosuch/*.jsonl"):
        assert refused(missing) == f"EVENTS={missing}: the bucket does not exist. Name another (docs/clusters.md)."
    assert refused("s3://lake/nosuch").endswith("there is no such object, folder or match.")

    (found,) = event_files(name)
    bucket.delete(name)
    with pytest.raises(LakehouseError, match=f"^{name}: the object was deleted while the run went on"):
        found.open()

    denied = f"EVENTS={FOLDER}: the object store refuses access, or no keys were found. Check AWS_REGION and the keys:"
    check_keys(store, after=b"0")
    try:
        assert refused().startswith(denied)  # keys that it does not know
        with pytest.raises(UsageError, match=f"^{name}: the object store refuses access"):
            found.open()
    finally:
        check_keys(store, after=b"inf")

    for variable in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(variable)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with HTTPServer((LOOPBACK, 0), Refusal) as keyless:
        Thread(target=keyless.serve_forever, daemon=True).start()
        monkeypatch.setenv("LAKEHOUSE_S3_ENDPOINT", f"http://{LOOPBACK}:{keyless.server_port}")
        assert refused().startswith(denied)
        keyless.shutdown()
    assert "no object store answers. Check LAKEHOUSE_S3_ENDPOINT" in refused()
