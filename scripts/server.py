"""`make up` and `make down`: a resident Spark Connect server for the commands of this checkout.

It is Spark's own, with the settings of the profile's local output, and listens on this machine only, for those who
can read its token. `server.json` in `LAKEHOUSE_DIR` names it. The server inherits the lock on that file, so whether it
lives is never guessed from a process number or a port, which may be another's by now.

The service runs as a plugin of a session like that of any command, in a process that does nothing besides. Spark's
class for it, `SparkConnectServer`, gives every client a class loader of its own, and with it none of the code that
Spark has compiled for others: each run of ours compiled its 210 pieces anew, and the JVM had them warm when the run was
over.
"""

import fcntl
import json
import os
import secrets
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, TextIO

from pyspark import SparkContext

from scripts.errors import LakehouseError, UsageError
from scripts.setup import kafka_jars
from scripts.spark import (
    local_session,
    local_target,
    log_file,
    remote_address,
    require_folder,
    require_java,
    resident_server,
    server_file,
    session,
    settings,
)

# A warning with every statement of dbt (scripts/spark.py), and the proxy that gRPC would take for this machine too.
FOR_DBT = "PYTHONWARNINGS=ignore::UserWarning:pyspark.sql.connect.conf no_grpc_proxy=localhost,127.0.0.1"
START_SECONDS = 120
STOP_SECONDS = 30
# Up to here the server keeps the profile's JVM options: the second compiler would take the cores from the work itself.
# On two cores the first five increments of the benchmark take 28, 15, 14, 14 and 13 s with it, and 21, 14, 13, 13 and
# 13 s without.
FEW_CORES = 4


def up() -> str:
    """Start the server, unless it is up. Returns what to tell the user.

    Raises:
        LakehouseError: it does not start.
    """
    os.environ.pop("SPARK_REMOTE", None)
    require_folder()
    with os.fdopen(os.open(server_file(), os.O_RDWR | os.O_CREAT, 0o600), "r+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            server = resident_server() or {}
            if "address" not in server:
                raise LakehouseError(
                    "another make up is starting the server. Wait for it, or stop it: make down."
                ) from None
            return f"The Spark server is up already.\n{_how_to_use(server['address'])}"
        require_java()
        if "spark.master" not in settings():
            problem = f"LAKEHOUSE_TARGET={local_target()} is no output that starts Spark: it has no spark.master"
            raise UsageError(f"{problem}. Unset it, or name one that has.")
        port, token = _address_before(file)
        ready, sender = os.pipe()
        process = _start(file.fileno(), sender, port, token)
        os.close(sender)
        server = {"pid": process.pid, "target": local_target()}
        _record(file, server)
        address = f"sc://localhost:{port}/;token={token}"
        try:
            if not select.select([ready], [], [], START_SECONDS)[0] or not os.read(ready, 1):
                problem = f"the Spark server did not start; its messages are at the end of {log_file()}"
                raise LakehouseError(f"{problem}. Mend what they name, then make up again.")
            _record(file, {**server, "address": address})
            session().sql("show schemas").collect()  # the first statement loads the catalog
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return f"The Spark server is up (make down stops it).\n{_how_to_use(address)}"


def down() -> str:
    """Stop the server. Returns what to tell the user."""
    server = resident_server()
    if server is None:
        return "No Spark server is up."
    if "pid" not in server:
        raise LakehouseError("make up is starting the server just now. Wait for it.")
    os.kill(server["pid"], signal.SIGTERM)
    until = time.monotonic() + STOP_SECONDS
    while resident_server() is not None:
        if time.monotonic() > until:
            os.killpg(server["pid"], signal.SIGKILL)
            until += STOP_SECONDS
        time.sleep(0.05)
    return "The Spark server is down."


def env() -> str:
    """The environment in which dbt by itself uses the server, if one is up: arguments of env(1)."""
    address = remote_address()
    further = f"LAKEHOUSE_TARGET={local_target()} {FOR_DBT}"
    return f"SPARK_REMOTE={address} {further}" if address else ""


def properties() -> str:
    """The settings of the profile's output, as a properties file of Spark: for a server that is started otherwise."""
    return "\n".join(f"{name}={value}" for name, value in settings().items())


def _address_before(file: TextIO) -> tuple[int, str]:
    """Port and token of the last server, so that an exported SPARK_REMOTE stays right; else new ones."""
    try:
        last = json.load(file)["address"]
        port, token = int(last.split(":")[2].split("/")[0]), last.split("token=")[1]
    except (ValueError, KeyError):
        port, token = 0, secrets.token_urlsafe()
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            probe.bind(("127.0.0.1", 0))
            token = secrets.token_urlsafe()  # clients still send the last one to whoever has its port
        return probe.getsockname()[1], token


def _start(lock: int, sender: int, port: int, token: str) -> subprocess.Popen[bytes]:
    if (os.cpu_count() or 1) > FEW_CORES:
        os.environ.setdefault("LAKEHOUSE_JVM_OPTIONS", "")  # the profile's are for short runs
    with log_file().open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "scripts.server", "serve", str(port), str(sender)],
            env={**os.environ, "SPARK_CONNECT_AUTHENTICATE_TOKEN": token},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=[lock, sender],
            start_new_session=True,  # Ctrl-C in this terminal is not meant for it
        )


def serve(port: str, sender: str) -> str:
    """Be the server until a signal ends it, or its JVM ends; `sender` is the pipe in which it says that it serves."""
    given = settings()
    plugins = filter(None, [given.get("spark.plugins"), "org.apache.spark.sql.connect.SparkConnectPlugin"])
    further = {"spark.plugins": ",".join(plugins), "spark.connect.grpc.binding.port": port}
    jars = kafka_jars(resolved=False)
    local_session(jars if all(jar.exists() for jar in jars) else [], further)
    context: Any = SparkContext
    jvm = context._gateway.proc
    signal.signal(signal.SIGTERM, lambda *_: jvm.terminate())
    os.write(int(sender), b"1")
    os.close(int(sender))
    jvm.wait()
    return "The Spark server is down."


def _record(file: TextIO, server: dict[str, object]) -> None:
    file.seek(0)
    file.truncate()
    json.dump(server, file)
    file.flush()


def _how_to_use(address: str) -> str:
    return f"make run, make sql and make docs use it. For dbt by itself:\nexport {FOR_DBT} SPARK_REMOTE='{address}'"


def main() -> int:
    try:
        commands: dict[str, Callable[..., str]] = {
            "up": up,
            "down": down,
            "env": env,
            "serve": serve,
            "properties": properties,
        }
        print(commands[sys.argv[1]](*sys.argv[2:]))
        return 0
    except LakehouseError as error:
        print(f"\nError: {error}", file=sys.stderr)
        return error.status


if __name__ == "__main__":
    sys.exit(main())
