"""The Spark session, built in one place from the one place of its settings, `profiles/profiles.yml`."""

import atexit
import fcntl
import json
import logging
import os
import pwd
import queue
import re
import shutil
import signal
import subprocess
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyspark
import yaml
from jinja2 import Environment, StrictUndefined
from pyspark import SparkConf, SparkContext, accumulators
from pyspark.sql import SparkSession

from scripts.errors import LakehouseError, UsageError

PROJECT = Path(os.environ.get("LAKEHOUSE_PROJECT", Path(__file__).resolve().parent.parent))
PROFILES = PROJECT / "profiles"
JAVA_VERSIONS = (17, 21)
# `LAKEHOUSE_JVM_OPTIONS` of a long run: the profile's, but with the second compiler, and room for what it compiles.
LONG_RUN = "-XX:-DontCompileHugeMethods -XX:+UseSerialGC -XX:ReservedCodeCacheSize=480m"
_jinja = Environment(undefined=StrictUndefined)
_log_before = 0  # how long the log was when the session began


def _tell_place() -> None:
    """Set `PWD`, which only a shell keeps right: the path of the warehouse begins with it, in dbt too."""
    os.environ["PWD"] = str(Path.cwd())


def lakehouse_dir() -> Path:
    """The folder that holds all state (catalog, warehouse, logs): `LAKEHOUSE_DIR`, else `.lakehouse`."""
    return Path(os.environ.get("LAKEHOUSE_DIR", ".lakehouse"))


def _tell_folders() -> None:
    """Have the profile and dbt find and write their files, wherever a command is called and whatever it may write."""
    if not Path("profiles", "log4j2.properties").exists():
        os.environ.setdefault("LAKEHOUSE_PROJECT", str(PROJECT))
    if not Path(".venv", "jars").exists():
        os.environ.setdefault("LAKEHOUSE_JARS", str(Path(__file__).resolve().parent.parent / ".venv" / "jars"))
    if not os.access(PROJECT, os.W_OK):
        for variable, folder in (("DBT_TARGET_PATH", "target"), ("DBT_LOG_PATH", "logs")):
            os.environ.setdefault(variable, str(lakehouse_dir().absolute() / folder))


_tell_place()  # before dbt has looked at the profile in another thread: with another PWD it would parse all models anew
_tell_folders()


def log_file() -> Path:
    """Where Spark's own messages go."""
    return lakehouse_dir() / "spark.log"


def _env_var(name: str, default: str | None = None) -> str:
    value = os.environ.get(name, default)
    if value is None:
        problem = f"the output {local_target()} needs the environment variable {name}, which is not set"
        raise UsageError(f"{problem} (docs/clusters.md).")
    return value


def read_yaml(path: Path) -> Any:
    """What a file of YAML says, read in C where PyYAML has that: in Python it takes eight times as long."""
    return yaml.load(path.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def settings() -> dict[str, str]:
    """Spark settings of the profile's target, as dbt would render them.

    Source: dbt's `profiles.yml`, whose values may call `env_var(name, default)`.
    """
    return {name: _rendered(value) for name, value in _output()["server_side_parameters"].items()}


def schema_prefix() -> str:
    """What the profile's target has before the names of schemas; empty: nothing."""
    return _rendered(_output()["schema"])


def _rendered(value: Any) -> str:
    return _jinja.from_string(str(value)).render(env_var=_env_var)


def _output() -> dict[str, Any]:
    _tell_place()
    profile = read_yaml(PROFILES / "profiles.yml")["debezium_lakehouse"]
    target, outputs = _rendered(profile["target"]), profile["outputs"]
    if target not in outputs:
        problem = f"LAKEHOUSE_TARGET={target}: profiles/profiles.yml has no such output"
        raise UsageError(f"{problem}. Use one of: {', '.join(outputs)}.")
    return dict(outputs[target])


def require_java() -> None:
    """Raise a `LakehouseError` unless `java` is there in a version that Spark 4 runs on."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    wanted = "Install Java 17 or 21 (Debian: apt install openjdk-17-jre-headless) or set JAVA_HOME to one."
    try:
        printed = subprocess.run([java or "java", "-version"], capture_output=True, text=True, check=True).stderr
    except (OSError, subprocess.CalledProcessError):
        raise LakehouseError(f"Java was not found. {wanted}") from None
    version = re.search(r'version "(?:1\.)?(\d+)', printed)  # Java 8 says 1.8
    if not version or int(version.group(1)) not in JAVA_VERSIONS:
        found = version.group(1) if version else printed.strip()
        raise LakehouseError(f"Java {found} was found; Spark 4 needs 17 or 21. {wanted}")


@contextmanager
def _stderr_to(path: Path) -> Iterator[None]:
    """Processes started in here (Spark's JVM) write their error output to `path`, for as long as they live."""
    with path.open("ab") as log:
        terminal = os.dup(2)
        os.dup2(log.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(terminal, 2)
            os.close(terminal)


@contextmanager
def locked(name: str, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """One process at a time of those that share `LAKEHOUSE_DIR` is in here; `waiting` is called if another one is."""
    with (lakehouse_dir() / name).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def server_file() -> Path:
    """What `make up` records of its server: the process and the address. The server has a lock on it while it lives."""
    return lakehouse_dir() / "server.json"


def resident_server() -> dict[str, Any] | None:
    """What `make up` noted: `pid`, `target`, and `address` once the server is up; None: there is no server."""
    try:
        file = server_file().open(encoding="utf-8")
    except FileNotFoundError:
        return None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            try:
                return dict(json.load(file))
            except json.JSONDecodeError:
                return {}
    return None  # a file without a lock was left by a server that is gone


def local_target() -> str:
    """The output of the profile that `LAKEHOUSE_TARGET` names."""
    return os.environ.get("LAKEHOUSE_TARGET") or "local"


def remote_address() -> str | None:
    """The Spark Connect server to use: `SPARK_REMOTE`, else what `make up` started for the same output. None: this
    process.

    The answer is put in the environment, from which the profile and PySpark's builder take it, in dbt too.
    """
    address = os.environ.pop("SPARK_REMOTE", None)
    if not address:
        server = resident_server() or {}
        if server.get("target") == local_target() and "address" in server:
            address = str(server["address"])
            os.environ["LAKEHOUSE_TARGET"] = "remote"
    if address:
        os.environ["SPARK_REMOTE"] = address
        if re.match(r"sc://(localhost|127\.0\.0\.1)\b", address):  # which gRPC would look for behind a proxy
            os.environ["no_grpc_proxy"] = "localhost,127.0.0.1"  # noqa: SIM112
    return address


def answers(address: str, seconds: float) -> bool:
    """Whether a gRPC server answers at `address` (`sc://host:port`). PySpark itself would try for ten minutes.

    Raises:
        LakehouseError: that is no address.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql.connect.client import DefaultChannelBuilder

    try:
        channel = DefaultChannelBuilder(address).toChannel()
    except (PySparkException, ValueError):
        place = address.partition(";")[0]  # what follows may be a token, which the error would show
        raise UsageError(f"SPARK_REMOTE={place}: not of the form sc://host:port, with ;name=value after it.") from None
    states: queue.SimpleQueue[Any] = queue.SimpleQueue()
    channel.subscribe(states.put, try_to_connect=True)
    try:
        while (state := states.get(timeout=seconds).name) != "READY":
            if state == "TRANSIENT_FAILURE":
                return False
        return True
    except queue.Empty:
        return False
    finally:
        channel.close()


def session(jars: Sequence[Path] = ()) -> SparkSession:
    """The session of this process: on the server that `remote_address` names, else in a JVM of its own.

    Args:
        jars: what a JVM of its own has besides its class path, of which the class-data archive has to know all.

    Raises:
        LakehouseError: `LAKEHOUSE_DIR` cannot be written, Java is missing or of a wrong version, or the server does not
            answer.
    """
    global _log_before
    require_folder()
    _log_before = log_file().stat().st_size if log_file().exists() else 0
    logging.getLogger("SQLQueryContextLogger").disabled = True  # prints whole stack traces beside the exception
    remote = remote_address()
    return _remote_session(remote) if remote else local_session(jars)


def require_folder() -> None:
    """Make the folder of the lakehouse, unless it is there.

    Raises:
        UsageError: it cannot be written, or is no folder.
    """
    with suppress(OSError):
        lakehouse_dir().mkdir(parents=True, exist_ok=True)
    if not (lakehouse_dir().is_dir() and os.access(lakehouse_dir(), os.W_OK)):
        raise UsageError(f"LAKEHOUSE_DIR={lakehouse_dir()} cannot be written by this user. Name another folder.")


def ran_out_of_memory() -> bool:
    """Whether the JVM of the session has ended for want of memory. The log is that of other processes too."""
    if not log_file().exists():
        return False
    with log_file().open("rb") as log:
        log.seek(_log_before)
        return b"Terminating due to java.lang.OutOfMemoryError" in log.read() and _jvm_has_ended()


def _jvm_has_ended() -> bool:
    for _ in range(50):  # it may be just about to
        gateway = SparkContext._gateway
        if (gateway.proc.poll() is not None) if gateway else resident_server() is None:
            return True
        time.sleep(0.1)
    return False


def local_session(jars: Sequence[Path], further: Mapping[str, str] | None = None) -> SparkSession:
    """The session in a JVM of this process, with `further` settings beside the profile's."""
    given = settings()
    if "spark.master" not in given:
        raise UsageError(
            f"the output {local_target()} of profiles/profiles.yml has no spark.master: name a Spark Connect server,"
            " for instance SPARK_REMOTE=sc://127.0.0.1:15002 (docs/clusters.md)."
        )
    from scripts.setup import refuse_other_sparks_jars, resolve_for_output  # which imports this module

    require_java()
    refuse_other_sparks_jars()
    resolve_for_output()
    given |= {**(further or {}), **({"spark.jars": ",".join(map(str, jars))} if jars else {})}
    # Prints a traceback when the JVM ends; what was asked of it then fails with an error of its own.
    accumulators.AccumulatorTCPServer.handle_error = lambda *_: None
    with _stderr_to(log_file()), _ctrl_c_is_noted() as note:
        _name_user(given)
        SparkContext.getOrCreate(SparkConf().setAll(list(given.items())))
        note()  # PySpark has put its own answer there
        return SparkSession.builder.config(map=given).getOrCreate()


@contextmanager
def _ctrl_c_is_noted() -> Iterator[Callable[[], None]]:
    """Stop where Spark has started, and not in the midst of that, which leaves its JVM behind; a second Ctrl-C stops at
    once. Afterwards it is `_stop`."""
    noted: list[bool] = []

    def stop_later(*_: Any) -> None:
        if noted:
            raise KeyboardInterrupt
        noted.append(True)

    is_obeyed = threading.current_thread() is threading.main_thread()
    is_obeyed = is_obeyed and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN

    def note(handler: Any = stop_later) -> None:
        if is_obeyed:
            signal.signal(signal.SIGINT, handler)

    note()
    try:
        yield note
    finally:
        note(_stop)
    if noted:
        raise KeyboardInterrupt


def _name_user(given: Mapping[str, str]) -> None:
    """A container may run as a number that no user has: Java then knows no name and no home, which Hadoop and Ivy ask
    for."""
    with suppress(KeyError):
        pwd.getpwuid(os.getuid())
        return
    home = f'"-Duser.home={lakehouse_dir().absolute()}"'
    options = "spark.driver.extraJavaOptions"
    conf = SparkConf().setAll([*given.items(), (options, f"{given.get(options, '')} {home}")])
    SparkContext._ensure_initialized(conf=conf)
    jvm: Any = SparkContext._jvm
    users = jvm.org.apache.hadoop.security.UserGroupInformation
    users.setLoginUser(users.createRemoteUser(f"user{os.getuid()}"))


def _stop(*_: Any) -> None:
    """In place of PySpark's own answer to Ctrl-C, which asks Spark in the midst of another question and confuses the
    two.

    The end of the process is the end of its JVM, and of what that was at.
    """
    logging.getLogger().setLevel(logging.CRITICAL + 1)  # Py4J would report each call that has no answer now
    raise KeyboardInterrupt


def _remote_session(address: str) -> SparkSession:
    from pyspark.sql.connect.client.retries import DefaultPolicy

    place = address.partition(";")[0].rstrip("/")  # what follows may be a token
    builder_settings = settings()
    if "spark.master" in builder_settings:
        raise UsageError(
            f"SPARK_REMOTE={place}, but the output {local_target()} of profiles/profiles.yml has a spark.master: Spark"
            " runs there or here. Unset SPARK_REMOTE or LAKEHOUSE_TARGET."
        )
    if not answers(address, seconds=10):
        raise LakehouseError(
            f"SPARK_REMOTE={place}: no Spark Connect server answers there. Start it, or unset SPARK_REMOTE: the server"
            " of make up is found without it, and none is needed."
        )
    # dbt asks for Hive with every statement, and would be warned each time that the server decides this.
    warnings.filterwarnings("ignore", message="Failed to set spark.sql.catalogImplementation")
    try:
        spark: Any = SparkSession.builder.config(map=builder_settings).getOrCreate()
    except Exception as error:
        raise LakehouseError(
            f"SPARK_REMOTE={place}: the server refused the session: {str(error).splitlines()[0]}"
        ) from error
    if (version := spark.version).split(".")[:2] != pyspark.__version__.split(".")[:2]:
        raise LakehouseError(
            f"SPARK_REMOTE={place}: the server is Spark {version}, and this client {pyspark.__version__}. Start a"
            " server of the client's version."
        )
    spark.client.set_retry_policies([DefaultPolicy(max_retries=5)])  # 17 seconds, not ten minutes
    _stop_work_with_the_client(spark, address)
    return spark


def _stop_work_with_the_client(spark: Any, address: str) -> None:
    """A signal stops what the session does on the server, as in a JVM of its own; the end of the process closes it."""

    def leave() -> None:
        with suppress(Exception):  # the server may be gone
            if answers(address, seconds=1):
                spark.interruptAll()  # Spark 4.1 stops only one statement when a session is closed
                spark.stop()

    def stop(number: int, _: Any) -> None:
        threading.Thread(target=spark.interruptAll, daemon=True).start()  # the main thread may hold gRPC's locks
        raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)

    atexit.register(leave)
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
                signal.signal(number, stop)
