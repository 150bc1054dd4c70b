"""What a user gives a run: files, folders, keys, jars."""

import os
import re
import shlex
import shutil
import subprocess
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from scripts.errors import LakehouseError
from scripts.files import event_files
from scripts.kafka import read_properties


def test_what_is_advised_as_keys_is_read_as_these_keys(project: Path) -> None:
    from scripts.arguments import parse_keys
    from scripts.keys import key_argument

    names = {"public.orders": ["id", "line"], "a b": ["Box Id", "c"], "it's": ["id"], 'say "x"': ["i d"], "a\\b": ["#"]}
    for table, columns in names.items():
        (given,) = shlex.split(key_argument(table, columns))  # as the shell does
        assert parse_keys(given) == {table: columns}
    assert parse_keys(' a=b  "c d=e f,g" ') == {"a": ["b"], "c d": ["e f", "g"]}


def test_words_behind_a_command_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    from scripts.messages import refuse_words

    assert refuse_words(["scripts/run.py"]) == 0 and refuse_words(["scripts/run.py", "EVENTS=a", "SYSTEM=b"]) == 2
    assert "EVENTS=a SYSTEM=b .venv/bin/python -m scripts.run" in capsys.readouterr().err


def test_files_of_a_folder_that_are_skipped_are_told(tmp_path: Path) -> None:
    for name in ("a.jsonl", ".b.jsonl.part", "_SUCCESS"):
        (tmp_path / name).touch()
    said: list[str] = []
    assert event_files(str(tmp_path), said.append) == [tmp_path.resolve() / "a.jsonl"]
    assert said == [f"{tmp_path}: 2 files or folders skipped, as their names begin with . or _"]


def test_a_folder_is_all_that_is_below_it_or_an_error(tmp_path: Path) -> None:
    """Also what it links to, each once; what a program is still writing, in a folder of its own, is left out."""
    events, other = tmp_path / "events", tmp_path / "other"
    for path in (
        events / "a.jsonl",
        events / "deep" / "b.jsonl",
        other / "c.jsonl",
        events / "_temporary" / "0" / "part.json",
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (events / "link").symlink_to(other)
    (events / "deep" / "up").symlink_to(events)
    (events / ".link").symlink_to(tmp_path / "nowhere")
    said: list[str] = []
    found = [Path(str(path)).name for path in event_files(str(events), said.append)]
    assert found == ["a.jsonl", "b.jsonl", "c.jsonl"] and ["2 files or folders skipped" in line for line in said] == [
        True
    ]
    (events / "d.jsonl").symlink_to(tmp_path / "nowhere")
    with pytest.raises(LakehouseError, match=r"d\.jsonl: the link leads nowhere"):
        event_files(str(events))


def test_missing_files_are_an_error_that_says_what_was_given(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / ".hidden").touch()
    with pytest.raises(
        LakehouseError, match=r"EVENTS=.*/folder: the folder holds no files but 1 whose names begin with \. or _"
    ):
        event_files(str(tmp_path / "folder"))
    for missing in ("missing.jsonl", "*.jsonl", "folder/**/*.jsonl"):
        with pytest.raises(LakehouseError, match="there is no such file, folder or match"):
            event_files(str(tmp_path / missing))


def test_a_jar_that_is_not_the_locked_one_is_refused(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from scripts import setup

    jars = list(setup.locked("jars.lock"))
    sqlite = next(jar for jar in jars if "sqlite" in jar)
    for jar in jars:
        shutil.copy(Path(os.environ["LAKEHOUSE_JARS"]) / setup.jar_name(jar), tmp_path)
    assert setup.missing(tmp_path) == []
    with (tmp_path / setup.jar_name(sqlite)).open("ab") as file:
        file.write(b"tampered")
    assert setup.missing(tmp_path) == [sqlite]
    (tmp_path / "classes.jsa").touch()
    locks = tmp_path / "locks"
    locks.mkdir()
    lock = (setup.LOCKS / "jars.lock").read_text()
    (locks / "jars.lock").write_text(lock.replace(setup.locked("jars.lock")[sqlite][0], "0" * 64))
    with (tmp_path / setup.jar_name(sqlite)).open("rb") as file:
        with monkeypatch.context() as patch:
            patch.setattr(setup, "LOCKS", locks)
            with pytest.raises(LakehouseError, match=f"are not the ones of scripts/jars.lock: {sqlite}"):
                setup.resolve(tmp_path)
        assert file.read().endswith(b"tampered")  # who reads a jar meanwhile, as another process does, has all of it
    assert setup.missing(tmp_path) == []  # it is the one of the true lock
    assert {path.suffix for path in tmp_path.iterdir()} == {".jar", ""}


def test_the_classes_of_the_jars_are_archived(project: Path) -> None:
    java = str(Path(os.environ["JAVA_HOME"], "bin", "java")) if os.environ.get("JAVA_HOME") else "java"
    if subprocess.run([java, "-Xshare:on", "-version"], capture_output=True).returncode:
        pytest.skip("this Java has no class data of its own, and cannot archive others")
    assert (Path(os.environ["LAKEHOUSE_JARS"]) / "classes.jsa").stat().st_size > 100_000_000


def test_sparks_main_jars_are_copied_without_compression(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from scripts import setup

    copies = setup.copies_of_sparks_jars(Path(os.environ["LAKEHOUSE_JARS"]))
    assert len(copies) == len(setup.SPARK_PARTS)
    for jar, copy in copies.items():
        with zipfile.ZipFile(jar) as packed, zipfile.ZipFile(copy) as unpacked:
            entries = [{one.filename: one.CRC for one in file.infolist()} for file in (packed, unpacked)]
            assert entries[0] == entries[1]
            assert {one.compress_type for one in unpacked.infolist()} == {zipfile.ZIP_STORED}
    setup.refuse_other_sparks_jars()
    monkeypatch.setenv("LAKEHOUSE_JARS", str(tmp_path))
    setup.refuse_other_sparks_jars()  # none are used
    (tmp_path / "spark").mkdir()
    (tmp_path / "spark" / "spark-core_2.13-4.0.0.jar").touch()
    with pytest.raises(LakehouseError, match="spark-core_2.13-4.0.0.jar: not of the Spark in .*pyspark. Call .* -m"):
        setup.refuse_other_sparks_jars()
    setup.unpack_sparks_jars(tmp_path)
    setup.refuse_other_sparks_jars()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    with pytest.raises(LakehouseError, match=f"not of the Spark in {tmp_path}"):
        setup.refuse_other_sparks_jars()


def test_an_image_gets_the_jars_of_all_outputs(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from scripts import setup

    locks = []
    monkeypatch.setattr(setup, "resolve", lambda _, lock="jars.lock": locks.append(lock))
    monkeypatch.setattr("sys.argv", ["setup", "all"])
    assert setup.main() == 0
    assert locks == ["jars.lock", "kafka.lock", "store.lock"]


def test_properties_are_read_as_java_reads_them(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text(
        "# comment\n! another\n\na=b\n c.d : e=f \nlong = one \\\n   two\nx\\=y=\\u00e9\\\\\nempty=\nsp ace\n"
    )
    assert read_properties(str(file)) == {
        "a": "b",
        "c.d": "e=f",
        "long": "one two",
        "x=y": "é\\",
        "empty": "",
        "sp": "ace",
    }
    assert read_properties("") == {}

    for content, problem in (
        (b"fine=1\ncanary", "line 2 is not of the form name=value"),
        (b"\xff=1", "no text in UTF-8"),
    ):
        file.write_bytes(content)
        with pytest.raises(LakehouseError, match=problem) as error:
            read_properties(str(file))
        assert "canary" not in str(error.value)


def test_a_broken_local_cache_of_jars_is_named(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A description without its jar, which other tools leave there, ends Spark's search for the jar."""
    from scripts import setup

    jar = "org.apache.commons:commons-pool2:2.12.1"
    problem = "java.lang.RuntimeException: [download failed: org.apache.commons#commons-pool2;2.12.1!commons-pool2.jar]"
    ended = SimpleNamespace(stderr=f'  File "errors.py", line 1\n: {problem}\n')
    monkeypatch.setattr("scripts.setup.subprocess.run", lambda *_, **__: ended)
    monkeypatch.setattr(setup, "locked", lambda _: {jar: ("digest", "licence")})
    monkeypatch.setattr("scripts.setup.Path.home", lambda: tmp_path)
    told = f"these jars could not be resolved, or are not the ones of scripts/kafka.lock: {jar}. {problem[28:]}\n"
    with pytest.raises(LakehouseError, match="^" + re.escape(told + "Check that Maven Central")):
        setup.resolve(tmp_path / "jars", "kafka.lock")

    broken = tmp_path / ".m2" / "repository" / "org" / "apache" / "commons" / "commons-pool2" / "2.12.1"
    broken.mkdir(parents=True)
    with pytest.raises(
        LakehouseError, match=re.escape(f"what it has of them may be broken: empty {broken}, and run again.")
    ):
        setup.resolve(tmp_path / "jars", "kafka.lock")


def test_what_landed_and_gave_no_table_is_an_error_with_its_reasons(project: Path) -> None:
    from scripts.results import without_tables

    def spark(rows: list[tuple[str | None, int]]) -> Any:
        found = [SimpleNamespace(error=error, n=number) for error, number in rows]
        collected = SimpleNamespace(collect=lambda: found)
        return SimpleNamespace(catalog=SimpleNamespace(tableExists=lambda _: True), sql=lambda _: collected)

    told = without_tables(spark([(None, 3), ("invalid_json", 1200)]), "no_tables")
    assert told.startswith(
        "SYSTEM=no_tables: what has landed gave no table: 3 of which no table was made, 1,200 rejected (invalid_json)."
    )
    assert without_tables(spark([]), "no_tables") == ""
