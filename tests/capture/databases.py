"""Temporary database servers on the loopback interface, each with a data directory of its own."""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any

LOOPBACK = "127.0.0.1"
POSTGRESQL_PROGRAMS = Path("/usr/lib/postgresql/15/bin")
TIMEOUT_SECONDS = 120.0

Row = dict[str, str | None]
Tables = dict[str, dict[str, Any]]


class CaptureError(Exception):
    """The capture cannot be made; the message says what to do."""


def program(name: str, package: str, folder: Path | None = None) -> str:
    """The path of an installed program; CaptureError names the Debian package of a missing one."""
    search = os.pathsep.join(filter(None, [str(folder or ""), os.environ.get("PATH", ""), "/usr/sbin"]))
    found = shutil.which(name, path=search)
    if found is None:
        raise CaptureError(f"{name} is not installed.\n  Install it: apt-get install {package}")
    return found


def wait_until(condition: Callable[[], bool], what: str, timeout: float = TIMEOUT_SECONDS) -> None:
    """Poll until the condition holds. Raises CaptureError after the timeout."""
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            raise CaptureError(f"waited {timeout:.0f} s in vain for: {what}")
        time.sleep(0.02)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def system_user(name: str) -> str | None:
    """The account to run a server as: neither server runs as root. None stands for the present user."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return name if name in known else "nobody"


class Database(ABC):
    """A server in a temporary folder. Used as a context manager; leaving it stops the server."""

    user = "capture"

    def __init__(self, folder: Path, account: str) -> None:
        self.folder = folder
        self.port = free_port()
        self.password = secrets.token_hex(16)
        self.account = system_user(account)
        self._server: subprocess.Popen[bytes] | None = None
        folder.mkdir()
        if self.account is not None:
            shutil.chown(folder, self.account)

    def __enter__(self) -> None:
        try:
            self._create()
            self._server = self._start(self._server_command())
            wait_until(self._answers, f"{type(self).__name__} to answer")
        except BaseException:
            self._stop()
            raise

    def __exit__(self, *_: object) -> None:
        self._stop()

    @abstractmethod
    def client(self) -> list[str]:
        """The command line of a client: it reads SQL from its input and stops at the first error."""

    @abstractmethod
    def client_environment(self) -> dict[str, str]:
        """The environment of that client, with the password."""

    @abstractmethod
    def connector(self, name: str) -> dict[str, str]:
        """The settings of Debezium's connector for the system of this name."""

    @abstractmethod
    def tables(self) -> Tables:
        """Every table with its key, its columns' types, and its rows as the database's own text."""

    @abstractmethod
    def _create(self) -> None: ...

    @abstractmethod
    def _server_command(self) -> list[str]: ...

    def execute(self, sql: str) -> str:
        """Run statements, each in a transaction of its own unless they say otherwise; return the output."""
        done = subprocess.run(
            self.client(),
            input=sql,
            env=self.client_environment(),
            capture_output=True,
            text=True,
            encoding="utf-8",
        )
        if done.returncode != 0:
            raise CaptureError(f"{type(self).__name__} refused a statement:\n{done.stderr.strip()}")
        return done.stdout

    def query(self, sql: str) -> list[Any]:
        """Run one query whose only column is JSON text; return the parsed values."""
        # Not splitlines(): JSON text may hold U+2028 and its like.
        return [json.loads(line) for line in self.execute(sql).split("\n") if line]

    def _start(self, command: list[str]) -> subprocess.Popen[bytes]:
        with self._log_file().open("ab") as log:
            return subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/", **self._identity()
            )

    def _run(self, command: list[str]) -> None:
        with self._log_file().open("ab") as log:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/", **self._identity()
            )
        if done.returncode != 0:
            raise CaptureError(f"{Path(command[0]).name} failed:\n{self._log()}")

    def _identity(self) -> dict[str, Any]:
        # A folder for temporary files that the account can write to.
        environment = {"env": os.environ | {"TMPDIR": str(self.folder)}}
        if self.account is None:
            return environment
        group = pwd.getpwnam(self.account).pw_gid
        return environment | {"user": self.account, "group": group, "extra_groups": []}

    def _answers(self) -> bool:
        if self._server is not None and self._server.poll() is not None:
            raise CaptureError(f"{type(self).__name__} ended while starting:\n{self._log()}")
        with contextlib.suppress(CaptureError):
            self.execute("select 1;")
            return True
        return False

    def kill(self) -> None:
        """End the server with SIGKILL, as a lost machine would."""
        assert self._server is not None
        self._server.kill()
        self._server.wait()

    def _stop(self) -> None:
        if self._server is None:
            return
        self._server.terminate()
        try:
            self._server.wait(TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            self._server.kill()
            self._server.wait()

    def _log_file(self) -> Path:
        return self.folder.with_suffix(".log")

    def _log(self) -> str:
        if not self._log_file().exists():
            return "(nothing)"
        return "\n".join(self._log_file().read_text(errors="replace").splitlines()[-20:])


class PostgreSql(Database):
    """PostgreSQL 15 with logical decoding."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, account="postgres")
        self._initdb = program("initdb", "postgresql-15", POSTGRESQL_PROGRAMS)
        self._postgres = program("postgres", "postgresql-15", POSTGRESQL_PROGRAMS)
        self._psql = program("psql", "postgresql-client-15", POSTGRESQL_PROGRAMS)

    def client(self) -> list[str]:
        address = [
            "--host",
            LOOPBACK,
            "--port",
            str(self.port),
            "--username",
            self.user,
            "--dbname",
            "postgres",
        ]
        output = ["--quiet", "--no-align", "--tuples-only"]
        return [self._psql, "--no-psqlrc", *output, *address, "--set", "ON_ERROR_STOP=1", "--file", "-"]

    def client_environment(self) -> dict[str, str]:
        return os.environ | {"PGPASSWORD": self.password, "PGCLIENTENCODING": "UTF8"}

    def connector(self, name: str) -> dict[str, str]:
        return {
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            "database.hostname": LOOPBACK,
            "database.port": str(self.port),
            "database.user": self.user,
            "database.password": self.password,
            "database.dbname": "postgres",
            "plugin.name": "pgoutput",
            "slot.name": name,
            "signal.data.collection": "public.debezium_signal",
            # After a kill the server holds the slot for a moment.
            "slot.retry.delay.ms": "500",
        }

    def tables(self) -> Tables:
        columns = self.query("""
            select json_build_object(
                'schema', n.nspname, 'table', c.relname,
                'columns', (
                    select json_object_agg(attname, format_type(atttypid, atttypmod) order by attnum)
                    from pg_attribute where attrelid = c.oid and attnum > 0 and not attisdropped
                ),
                'key', coalesce((
                    select json_agg(a.attname order by array_position(i.indkey::int[], a.attnum::int))
                    from pg_index as i
                    inner join pg_attribute as a on a.attrelid = i.indrelid and a.attnum = any(i.indkey)
                    where i.indrelid = c.oid and i.indisprimary
                ), '[]'::json)
            )
            from pg_class as c
            inner join pg_namespace as n on c.relnamespace = n.oid
            where c.relkind = 'r' and n.nspname not in ('pg_catalog', 'information_schema')
            order by n.nspname, c.relname;
        """)
        tables: Tables = {}
        for table in columns:
            names = list(table["columns"])
            labels = ", ".join(_literal(name) for name in names)
            values = ", ".join(f"{_identifier(name)}::text" for name in names)
            # A table without a key has nothing but its text to sort by.
            order = ", ".join(_identifier(name) for name in table["key"]) or values
            rows = self.query(
                f"select json_object(array[{labels}], array[{values}])"
                f" from {_identifier(table['schema'])}.{_identifier(table['table'])} order by {order};"
            )
            tables[f"{table['schema']}.{table['table']}"] = {
                "key": table["key"],
                "columns": table["columns"],
                "rows": rows,
            }
        return tables

    def wait_for_session(self, condition: str) -> None:
        """Return as soon as some session of a client meets a condition on pg_stat_activity."""
        query = f"select count(*) from pg_stat_activity where application_name = 'psql' and {condition};"
        wait_until(lambda: self.query(query) != [0], f"a session where {condition}")

    def _create(self) -> None:
        password_file = self.folder.with_suffix(".password")
        password_file.touch(mode=0o600)
        password_file.write_text(self.password)
        if self.account is not None:
            shutil.chown(password_file, self.account)
        self._run(
            [
                self._initdb,
                "--pgdata",
                str(self.folder),
                "--username",
                self.user,
                "--pwfile",
                str(password_file),
                "--auth",
                "scram-sha-256",
                "--encoding",
                "UTF8",
                "--locale",
                "C",
                "--no-sync",
            ]
        )

    def _server_command(self) -> list[str]:
        settings = {
            "listen_addresses": LOOPBACK,
            "port": str(self.port),
            "unix_socket_directories": "",
            "wal_level": "logical",
            "fsync": "off",
            "autovacuum": "off",
            "timezone": "UTC",
            "datestyle": "ISO",
            "bytea_output": "hex",
        }
        return [
            self._postgres,
            "-D",
            str(self.folder),
            *(f"--{name}={value}" for name, value in settings.items()),
        ]

    def _stop(self) -> None:
        # SIGTERM would wait for the clients to leave; SIGINT ends their sessions.
        if self._server is not None and self._server.poll() is None:
            self._server.send_signal(signal.SIGINT)
        super()._stop()


class Replica(PostgreSql):
    """A server that follows another one, until it is promoted in its place."""

    def __init__(self, folder: Path, primary: PostgreSql) -> None:
        super().__init__(folder)
        self._primary = primary
        self.password = primary.password
        self._basebackup = program("pg_basebackup", "postgresql-15", POSTGRESQL_PROGRAMS)

    def stop_following(self) -> None:
        """It has what the primary has written so far, and nothing of what comes."""
        (written,) = self._primary.query("select to_json(pg_current_wal_lsn());")
        behind = f"select pg_last_wal_replay_lsn() < '{written}';"
        wait_until(lambda: self.execute(behind).strip() == "f", "the replica to have what the primary has")
        self.execute("alter system set primary_conninfo = ''; select pg_reload_conf();")
        wait_until(
            lambda: self.query("select count(*) from pg_stat_wal_receiver;") == [0], "the replica to stop following"
        )

    def promote(self) -> None:
        self._primary.kill()
        self.execute("select pg_promote();")

    def _create(self) -> None:
        source = ["--host", LOOPBACK, "--port", str(self._primary.port), "--username", self.user]
        options = ["--pgdata", str(self.folder), "--write-recovery-conf", "--checkpoint", "fast", "--no-sync"]
        self._run([self._basebackup, *source, *options])
        self.folder.chmod(0o700)

    def _identity(self) -> dict[str, Any]:
        identity = super()._identity()
        return identity | {"env": identity["env"] | {"PGPASSWORD": self.password}}


class MariaDb(Database):
    """MariaDB 10.11 with a row-based binary log."""

    # The log's first file gets the next number: the capture crosses from six to seven digits.
    last_log_number = "999998"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, account="mysql")
        self._install = program("mariadb-install-db", "mariadb-server")
        self._mariadbd = program("mariadbd", "mariadb-server")
        self._mariadb = program("mariadb", "mariadb-client")

    def client(self) -> list[str]:
        address = ["--protocol", "tcp", "--host", LOOPBACK, "--port", str(self.port), "--user", self.user]
        output = ["--batch", "--raw", "--skip-column-names"]
        return [self._mariadb, "--no-defaults", *output, *address, "--default-character-set", "utf8mb4"]

    def client_environment(self) -> dict[str, str]:
        return os.environ | {"MYSQL_PWD": self.password}

    def connector(self, name: str) -> dict[str, str]:
        return {
            "connector.class": "io.debezium.connector.mariadb.MariaDbConnector",
            "database.hostname": LOOPBACK,
            "database.port": str(self.port),
            "database.user": self.user,
            "database.password": self.password,
            "database.ssl.mode": "disable",
            "database.server.id": "2",
            "database.include.list": f"{name},archive",
            "signal.data.collection": f"{name}.debezium_signal",
            "include.schema.changes": "true",
            "schema.history.internal": "io.debezium.storage.file.history.FileSchemaHistory",
            "schema.history.internal.file.filename": str(self.folder.with_suffix(".history")),
        }

    def tables(self) -> Tables:
        columns = self.query("""
            select json_object(
                'schema', table_schema, 'table', table_name, 'column', column_name,
                'type', column_type, 'kind', data_type
            )
            from information_schema.columns
            where table_schema not in ('mysql', 'sys', 'performance_schema', 'information_schema')
            order by table_schema, table_name, ordinal_position;
        """)
        keys = self.query("""
            select json_object('schema', table_schema, 'table', table_name, 'column', column_name)
            from information_schema.key_column_usage
            where constraint_name = 'PRIMARY' and table_schema not in ('mysql', 'sys', 'performance_schema')
            order by table_schema, table_name, ordinal_position;
        """)
        tables: Tables = {}
        values: dict[str, list[str]] = {}
        for column in columns:
            name = f"{column['schema']}.{column['table']}"
            table = tables.setdefault(name, {"key": [], "columns": {}, "rows": []})
            table["columns"][column["column"]] = column["type"]
            values.setdefault(name, []).append(_mariadb_text(column["column"], column["kind"]))
        for key in keys:
            tables[f"{key['schema']}.{key['table']}"]["key"].append(key["column"])
        for name, table in tables.items():
            pairs = ", ".join(
                f"{_literal(column)}, {value}" for column, value in zip(table["columns"], values[name], strict=True)
            )
            order = ", ".join(_backticked(column) for column in table["key"] or table["columns"])
            schema, _, relation = name.partition(".")
            table["rows"] = self.query(
                f"set time_zone = '+00:00'; select json_object({pairs})"
                f" from {_backticked(schema)}.{_backticked(relation)} order by {order};"
            )
        return tables

    def _create(self) -> None:
        self._run(
            [
                self._install,
                "--no-defaults",
                f"--datadir={self.folder}",
                "--skip-test-db",
                "--auth-root-authentication-method=normal",
            ]
        )
        (self.folder / f"binlog.{self.last_log_number}").touch()
        users = self.folder.with_suffix(".sql")
        users.touch(mode=0o600)
        users.write_text(
            "drop user root@localhost;\n"
            f"create user {self.user}@'{LOOPBACK}' identified by '{self.password}';\n"
            f"grant all on *.* to {self.user}@'{LOOPBACK}' with grant option;\n"
        )
        if self.account is not None:
            shutil.chown(users, self.account)

    def _server_command(self) -> list[str]:
        settings = {
            "datadir": str(self.folder),
            "init-file": str(self.folder.with_suffix(".sql")),
            "bind-address": LOOPBACK,
            "port": str(self.port),
            "socket": str(self.folder / "socket"),
            "pid-file": str(self.folder / "pid"),
            "skip-name-resolve": "1",
            "server-id": "1",
            "log-bin": "binlog",
            "binlog-format": "ROW",
            "binlog-row-image": "FULL",
            "binlog-row-metadata": "FULL",
            "default-time-zone": "+00:00",
            "character-set-server": "utf8mb4",
            "innodb-flush-log-at-trx-commit": "0",
        }
        return [self._mariadbd, "--no-defaults", *(f"--{name}={value}" for name, value in settings.items())]


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _backticked(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _mariadb_text(column: str, kind: str) -> str:
    """The expression that shows a column as text: bytes as hex, bits as a number, geometry as WKT."""
    name = _backticked(column)
    if kind in {"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"}:
        return f"lower(hex({name}))"
    if kind == "bit":
        return f"cast({name} + 0 as char)"
    if kind in {"point", "geometry", "linestring", "polygon"}:
        return f"st_astext({name})"
    return f"cast({name} as char)"
