"""Objects of a store, read as files: which ones a URI names, and of what content. A folder stands for the store."""

import gzip
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyarrow.fs import FileInfo, FileType, LocalFileSystem, SubTreeFileSystem
from pyspark.sql import Row

from scripts import stores
from scripts.chunks import chunks
from scripts.compression import opened
from scripts.errors import LakehouseError, UsageError
from scripts.files import event_files
from scripts.ledger import RECOVERED_BY, Ledger, _recovered
from scripts.stores import StoredObject, stored_objects
from scripts.taken import CLOCKS_APART, times


class Answer:
    """An object that is open: one request for its state, and one for each part that is read."""

    def __init__(self, path: Path, before_read: Callable[[], None]) -> None:
        self._path, self._before_read, self._at = path, before_read, 0
        content = path.read_bytes()
        self._state, self._size = hashlib.md5(content).hexdigest(), len(content)

    def __enter__(self) -> "Answer":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def metadata(self) -> dict[str, bytes]:
        return {"ETag": self._state.encode()}

    def read(self, _: int) -> bytes:
        self._before_read()
        part = self._path.read_bytes()[self._at : min(self._at + 10, self._size)]
        self._at += len(part)
        return part


class Store:
    def __init__(self, folder: Path) -> None:
        self.folder, self.asked, self.read = folder, list[str](), list[str]()
        self.before_read: Callable[[], None] = lambda: None
        self.get_file_info: Callable[[Any], Any] = SubTreeFileSystem(str(folder), LocalFileSystem()).get_file_info

    def open_input_file(self, name: str) -> Answer:
        self.asked.append(name)

        def before_read() -> None:
            self.read.append(name)
            self.before_read()

        return Answer(self.folder / name, before_read)

    def put(self, name: str, content: bytes, age: int = 0) -> None:
        path = self.folder / "lake" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        written = path.stat().st_mtime_ns - age * 10**9
        os.utime(path, ns=(written, written))

    def objects(self, place: str = "", say: Callable[[str], None] = lambda _: None) -> list[Any]:
        return stored_objects(f"s3://lake/{place}", say, self)


@pytest.fixture
def store(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    (tmp_path / "lakehouse").mkdir()
    monkeypatch.setenv("LAKEHOUSE_DIR", str(tmp_path / "lakehouse"))
    return Store(tmp_path)


NAMES = ["a.jsonl", "a.jsonl.gz", ".a.jsonl", "_SUCCESS", "b/a.jsonl", "b/c/d é+%20.jsonl", "_b/a.jsonl", "x[1].jsonl"]


@pytest.mark.parametrize(
    ("place", "found", "skipped"),
    [
        ("", "a.jsonl a.jsonl.gz b/a.jsonl b/c/d é+%20.jsonl x[1].jsonl", 3),
        ("b/", "b/a.jsonl b/c/d é+%20.jsonl", 0),
        ("a.jsonl", "a.jsonl", 0),
        ("_SUCCESS", "_SUCCESS", 0),
        ("_b", "_b/a.jsonl", 0),
        ("x[1].jsonl", "x[1].jsonl", 0),
        ("*", "a.jsonl a.jsonl.gz b/a.jsonl b/c/d é+%20.jsonl x[1].jsonl", 3),
        ("*.jsonl", "a.jsonl x[1].jsonl", 1),
        ("*/*.jsonl", "b/a.jsonl", 1),
        ("**/*.jsonl", "a.jsonl b/a.jsonl b/c/d é+%20.jsonl x[1].jsonl", 2),
        ("_*", "_SUCCESS _b/a.jsonl", 0),
        ("?/c", "b/c/d é+%20.jsonl", 0),
    ],
)
def test_a_uri_names_an_object_a_folder_or_a_pattern(store: Store, place: str, found: str, skipped: int) -> None:
    for name in NAMES:
        store.put(name, b"{}")
    said: list[str] = []
    assert " ".join(str(each).removeprefix("s3://lake/") for each in store.objects(place, said.append)) == found
    left_out = f"s3://lake/{place}: {skipped} objects skipped, as their names begin with . or _"
    assert said == ([left_out] if skipped else [])


def test_a_folder_may_have_the_name_of_an_object(store: Store) -> None:
    store.put("b/a.jsonl", b"{}")
    info = store.get_file_info
    of_object = FileInfo("lake/b", type=FileType.File, size=2)
    store.get_file_info = lambda place: of_object if place == "lake/b" else info(place)
    assert [str(each) for each in store.objects("b/")] == ["s3://lake/b/a.jsonl"]
    assert [str(each) for each in store.objects("b")] == ["s3://lake/b"]


def test_a_uri_that_names_nothing_is_an_error_and_keys_in_it_are_not_shown(store: Store) -> None:
    store.put("folder/_SUCCESS", b"")
    with pytest.raises(UsageError, match=r"^EVENTS=s3://lake/folder: there is no such .* but 1 whose names begin"):
        store.objects("folder")
    for missing in ("missing", "folder/*.jsonl"):
        with pytest.raises(UsageError, match=r"there is no such object, folder or match\."):
            store.objects(missing)
    for events in ("s3://", "s3:///a", "s3://key:geheim@lake/a", "s3://la*/a"):
        with pytest.raises(UsageError, match="expected s3://bucket/folder") as refused:
            event_files(events)
        assert "geheim" not in str(refused.value)


def test_an_object_that_is_replaced_while_it_is_read_is_read_as_one_version(store: Store) -> None:
    old, new = b"old" * 10, b"new" * 5
    store.put("a", old)
    (found,) = store.objects("a")

    def replace() -> None:
        if len(store.read) == 3:
            store.put("a", new)

    store.before_read = replace
    for _ in range(2):  # of one copy
        with opened(found) as file:
            assert file.read() == new
    assert len(store.asked) == 4 and not list((store.folder / "lakehouse").iterdir())

    found.close()
    store.before_read = lambda: store.put("a", str(len(store.read)).encode() * 30)
    with pytest.raises(LakehouseError, match="^s3://lake/a: the object is replaced whenever it is read"):
        found.open()


def test_an_object_that_is_gone_or_damaged_is_named(store: Store) -> None:
    for name in ("a", "b"):
        store.put(name, gzip.compress(b"text")[:10] + b"\xff" * 20)
    first, second = store.objects()
    (store.folder / "lake" / "a").unlink()
    with pytest.raises(LakehouseError, match="^s3://lake/a: the object was deleted while the run went on"):
        first.open()
    with pytest.raises(LakehouseError, match="^s3://lake/b: the compressed file is damaged"):
        list(chunks([second], Ledger({}, {}, {}, 0, 0), []))


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ("AWS Error NO_SUCH_BUCKET during ListObjectsV2 operation: The specified", "the bucket does not exist"),
        ("AWS Error ACCESS_DENIED during HeadObject operation: No response", "the object store refuses access, or no"),
        ("AWS Error INVALID_ACCESS_KEY_ID during ListObjectsV2 operation:", "the object store refuses access, or no"),
        ("AWS Error UNKNOWN (HTTP status 301) during HeadObject operation:", "the object store refuses access, or no"),
        (
            "AWS Error NETWORK_CONNECTION during HeadObject operation: curl",
            "no object store answers. Check LAKEHOUSE_S",
        ),
        ("AWS Error SLOW_DOWN\nof many", "the object store cannot be read: AWS Error SLOW_DOWN"),
    ],
)
def test_why_a_store_cannot_be_read_is_said_in_a_line(store: Store, answer: str, told: str) -> None:
    def fail(_: object) -> None:
        raise OSError(answer)

    store.get_file_info = fail
    with pytest.raises(LakehouseError, match=f"^EVENTS=s3://lake/a: {told}") as refused:
        store.objects("a")
    assert "\n" not in str(refused.value)


def test_an_object_is_known_from_bronze_if_a_loader_died(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "_store", lambda: store)
    store.put("a", text := b'{"n":1}\n{"n":2}\n')
    record = dict.fromkeys(RECOVERED_BY) | {"value": '{"n":1}'}
    assert _recovered("s3://lake/a", Row(lines=1, bytes=8, **record)).digest == hashlib.sha256(text[:8]).hexdigest()
    assert _recovered("s3://lake/b", Row(lines=1, bytes=8, **record)).digest == "gone"


def test_only_what_is_new_of_objects_is_read(store: Store) -> None:
    """What changed long ago is not even asked for; of what changed just now the ETag."""
    known = Ledger({}, {}, {}, 0, 0)
    notes: list[str] = []

    def landed() -> list[tuple[str, str]]:
        """The name and value of each new record."""
        notes.clear()
        store.asked.clear()
        store.read.clear()
        found = []
        objects = store.objects()
        for chunk in chunks(objects, known, notes):
            known.files.update(chunk.taken)
            known.contents.update({taken.whole.split()[0]: (name, taken) for name, taken in chunk.taken.items()})
            rows = chunk.records.select(["file", "value"]).to_pylist()
            found += [(row["file"].removeprefix("s3://lake/"), row["value"]) for row in rows]
        assert not any(each._copy for each in objects)
        return found

    settled = CLOCKS_APART // 10**9 + 10
    store.put("old", b'{"n":1}\n', age=settled)
    store.put("young", b'{"n":2}\n')
    assert landed() == [("old", '{"n":1}'), ("young", '{"n":2}')]
    assert landed() == [] and store.asked == ["lake/young"] and not store.read

    store.put("young", b'{"n":3}\n')  # as long, and at the same time as far as the store tells
    assert landed() == [("young", '{"n":3}')]
    store.put("young", b'{"n":3}\n{"n":4}\n', age=settled)
    store.put("copy", b'{"n":1}\n')
    assert landed() == [("young", '{"n":4}')]
    assert notes == ["s3://lake/copy: same content as s3://lake/old, which has landed; skipped"]
    assert landed() == [] and store.asked == ["lake/copy"] and not store.read


def test_times_of_an_object_have_the_seconds_that_every_answer_of_a_store_has(store: Store) -> None:
    store.put("a", b"1")
    path = store.folder / "lake" / "a"
    seen = set()
    for fraction in (0, 999_999_999):
        os.utime(path, ns=(0, 1_700_000_000 * 10**9 + fraction))
        (found,) = store.objects("a")
        assert isinstance(found, StoredObject)
        seen.add(times(found))
    assert seen == {f"01700000000000000000 {1_700_000_000 * 10**9} 1"}
