"""Embedded or remote is one setting: the commands on the server of `make up`, each a process of its own."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import REPOSITORY
from event_factory import created, deleted, updated
from test_stories import Record, Rows, tell

# A statement that takes every core for days, in a thread as dbt's are.
BUSY = """
from multiprocessing.pool import ThreadPool
from scripts.spark import session
spark = session()
print("ready", flush=True)
ThreadPool(1).map(lambda query: spark.sql(query).collect(), ["select max(id) from range(1000000000000000)"])
"""

# Spark tells in its log of all code that it compiles.
TELLS_COMPILED = """
logger.compiled.name = org.apache.spark.sql.catalyst.expressions.codegen.CodeGenerator
logger.compiled.level = info
"""


class Checkout:
    """A copy of the project without models, and what a user does in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("macros", "profiles", "docs", "seeds"):
            shutil.copytree(REPOSITORY / name, folder / name)
        shutil.copy(REPOSITORY / "dbt_project.yml", folder)
        (folder / "models").mkdir()
        (folder / "events.jsonl").touch()
        with (folder / "profiles" / "log4j2.properties").open("a") as settings:
            settings.write(TELLS_COMPILED)
        self.environment = {
            **{name: value for name, value in os.environ.items() if name not in ("SPARK_REMOTE", "LAKEHOUSE_TARGET")},
            "LAKEHOUSE_DIR": "lakehouse",
            "LAKEHOUSE_PROJECT": str(folder),
            "http_proxy": "http://127.0.0.1:9",  # is no way to a server of this machine
            "LAKEHOUSE_JARS": os.environ.get("LAKEHOUSE_JARS", str(REPOSITORY / ".venv" / "jars")),
            "DBT_PROFILES_DIR": str(folder / "profiles"),
            "PYTHONPATH": str(REPOSITORY),
            "EVENTS": str(folder / "events.jsonl"),
            "SYSTEM": "shop",
        }

    def start(self, *command: str, **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env={**self.environment, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *command: str, stdin: str = "", **environment: str) -> tuple[int, str]:
        process = self.start(*command, **environment)
        out, err = process.communicate(stdin, timeout=900)
        return process.returncode, out + err

    def module(self, name: str, *arguments: str, stdin: str = "", **environment: str) -> tuple[int, str]:
        """What a command says that has no Java, so that it cannot start a Spark of its own."""
        return self.run(
            sys.executable,
            "-m",
            f"scripts.{name}",
            *arguments,
            stdin=stdin,
            **{"JAVA_HOME": "/nonexistent", **environment},
        )

    def land(self, *events: dict[str, Any]) -> str:
        with (self.folder / "events.jsonl").open("a") as file:
            file.writelines(json.dumps(event) + "\n" for event in events)
        status, told = self.module("run")
        assert status == 0, told
        return told

    def server_seconds(self) -> int:
        """How long the processes of the server have kept a core busy so far."""
        pid = json.loads((self.folder / "lakehouse" / "server.json").read_text())["pid"]
        told = subprocess.run(
            ["ps", "-o", "cputimes=", "--sid", str(pid)], capture_output=True, text=True, check=True
        ).stdout
        return sum(map(int, told.split()))

    def rows(self, query: str) -> list[str]:
        status, told = self.module("sql", stdin=f"{query};\n")
        assert status == 0, told
        lines = [line for line in told.splitlines() if line.startswith("|")]
        return [" ".join(line.replace("|", " ").split()) for line in lines[1:]]

    def compiled(self) -> int:
        """How many pieces of code Spark has compiled so far."""
        return (self.folder / "lakehouse" / "spark.log").read_text().count("Code generated in")

    def up(self) -> dict[str, Any]:
        """Start the server, and what is recorded of it."""
        status, told = self.run(sys.executable, "-m", "scripts.server", "up")
        assert status == 0 and "The Spark server is up (" in told, told
        return dict(json.loads((self.folder / "lakehouse" / "server.json").read_text()))


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkout]:
    checkout = Checkout(tmp_path_factory.mktemp("checkout"))
    checkout.up()
    yield checkout
    assert "The Spark server is down." in checkout.module("server", "down")[1]
    assert "No Spark server is up." in checkout.module("server", "down")[1]


def test_commands_of_a_checkout_work_on_its_server(checkout: Checkout) -> None:
    assert "The Spark server is up already." in checkout.module("server", "up")[1]

    assert "2 new records" in checkout.land(created(10, id=1, status="new"), created(11, id=2, status="new"))
    told = checkout.land()
    assert "0 new records" in told and "Nothing new to build." in told
    events = checkout.folder / "other.jsonl"
    events.write_text(json.dumps(created(10, id=7, status="at once")) + "\n")
    at_once = checkout.start(
        sys.executable, "-m", "scripts.run", JAVA_HOME="/nonexistent", EVENTS=str(events), SYSTEM="other"
    )
    checkout.land(updated(20, id=1, status="paid"), deleted(21, id=2))
    out, err = at_once.communicate(timeout=900)
    assert at_once.returncode == 0 and "1 new records" in out, out + err
    assert checkout.rows("select id, status from shop.orders union all select id, status from other.orders") == [
        "1 paid",
        "7 at once",
    ]

    words = checkout.module("server", "env")[1].split()
    status, told = checkout.run(
        "env", *words, "JAVA_HOME=/nonexistent", str(Path(sys.executable).parent / "dbt"), "run"
    )
    assert status == 0 and " ERROR=0 " in told and "Warning" not in told, told
    assert checkout.rows("select id, status from shop.orders") == ["1 paid"]

    for path in (checkout.folder / "lakehouse" / "warehouse").rglob("*"):  # the folder is relative here
        os.utime(path, (1_700_000_000, 1_700_000_000))
    for table in ("bronze.shop", "silver.shop__orders"):
        checkout.rows(f"call system.remove_orphan_files(table => '{table}')")
    assert checkout.rows("select id, status from shop.orders") == ["1 paid"]


ROWS = """
import json, sys
from scripts.spark import session
spark = session()
for table in sys.argv[1:]:
    rows = spark.sql(f"select * from stories.{table} order by id").collect()
    print("#" + json.dumps([table, [row.asDict() for row in rows]]))
"""


@pytest.mark.soak
def test_the_stories_have_their_rows_on_a_server(checkout: Checkout) -> None:
    files = checkout.folder / "stories"
    files.mkdir()

    def run(records: list[Record]) -> None:
        (files / f"{len([*files.iterdir()])}.jsonl").write_text(
            "".join(json.dumps(record) + "\n" for record in records)
        )
        status, told = checkout.module("run", EVENTS=str(files), SYSTEM="stories")
        is_late = "started over" in told and not re.search("Error|failed", told)  # a log that starts over
        assert status == 0 or is_late, told

    def rows_of(tables: list[str]) -> dict[str, Rows]:
        status, told = checkout.run(sys.executable, "-c", ROWS, *tables, JAVA_HOME="/nonexistent")
        assert status == 0, told
        return dict(json.loads(line[1:]) for line in told.splitlines() if line.startswith("#"))

    def rebuild(models: list[str]) -> None:
        words = checkout.module("server", "env")[1].split()
        dbt = str(Path(sys.executable).parent / "dbt")
        status, told = checkout.run(
            "env", *words, "JAVA_HOME=/nonexistent", dbt, "run", "--full-refresh", "--select", *models
        )
        assert status == 0, told

    assert tell(run, rows_of, rebuild) == {}


@pytest.mark.soak
def test_what_spark_compiled_for_one_command_serves_the_next(checkout: Checkout) -> None:
    query = "select id % 7, count(*), max(concat('a', id)) from range(100) where id > 5 group by id % 7 order by 1"
    before = checkout.compiled()
    first = checkout.rows(query)
    once = checkout.compiled()

    assert checkout.rows(query) == first
    assert before < once == checkout.compiled()


@pytest.mark.soak
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_work_ends_with_the_command_that_asked_for_it(checkout: Checkout, how: signal.Signals) -> None:
    busy = checkout.start(sys.executable, "-c", BUSY)
    assert busy.stdout and busy.stdout.readline() == "ready\n"
    before = checkout.server_seconds()
    while checkout.server_seconds() < before + 3:  # until it is at the query
        time.sleep(0.1)
    busy.send_signal(how)
    busy.communicate(timeout=60)

    assert checkout.rows("select count(*) from range(3)") == ["3"]  # for which a core is needed


@pytest.mark.soak
def test_nobody_else_gets_in_and_a_server_that_is_gone_is_noticed(checkout: Checkout) -> None:
    before = json.loads((checkout.folder / "lakehouse" / "server.json").read_text())
    place = before["address"].partition("/;")[0]
    port = int(place.rpartition(":")[2])

    status, told = checkout.module("run", SPARK_REMOTE=place)  # without the token
    assert status == 1 and f"Error: SPARK_REMOTE={place}: the server refused the session" in told
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.2", port))
    assert "No Spark server is up." in checkout.module("server", "down", LAKEHOUSE_DIR="another")[1]
    status, told = checkout.module("run", LAKEHOUSE_DIR="another")
    assert status == 1 and "Error: Java was not found." in told

    os.kill(before["pid"], signal.SIGKILL)
    while socket.socket().connect_ex(("127.0.0.1", port)) == 0:
        time.sleep(0.05)
    status, told = checkout.module("run", SPARK_REMOTE=before["address"])
    assert status == 1 and f"Error: SPARK_REMOTE={place}: no Spark Connect server answers there." in told
    status, told = checkout.module("run")
    assert status == 1 and "Error: Java was not found." in told
    assert "No Spark server is up." in checkout.module("server", "down")[1]

    status, told = checkout.module("run", SPARK_REMOTE="localhost:15002")
    assert status == 2 and "not of the form sc://host:port" in told
    assert checkout.up()["address"] == before["address"]
