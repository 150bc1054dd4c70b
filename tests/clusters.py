"""What the outputs of the profile need besides Spark: a standalone cluster, an object store, a REST catalog."""

import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pyspark
from conftest import REPOSITORY

SPARK = Path(pyspark.__path__[0])
JARS = Path(os.environ.get("LAKEHOUSE_JARS", REPOSITORY / ".venv" / "jars"))
LOOPBACK = "127.0.0.1"
MOTO = "moto[server]==5.2.5"  # the object store: Apache-2.0, used by tests alone, in an environment of its own


@contextmanager
def server(folder: Path, *command: str, answers: Callable[[], bool], **environment: str) -> Iterator[None]:
    """A process whose output is a file in `folder`, from when it answers until the block ends."""
    log = folder / f"{Path(command[0]).name}-{secrets.token_hex(4)}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env={**os.environ, **environment}
        )
    try:
        until = time.monotonic() + 120
        while not answers():
            assert process.poll() is None and time.monotonic() < until, log.read_text(errors="replace")[-3000:]
            time.sleep(0.2)
        yield
    finally:
        process.terminate()
        process.wait(60)


def serves(address: str) -> bool:
    """Whether something answers HTTP, whatever it says."""
    with suppress(OSError):
        with suppress(urllib.error.HTTPError):
            urllib.request.urlopen(address, timeout=5).close()
        return True
    return False


def spark_class(name: str, *arguments: str) -> list[str]:
    return [str(SPARK / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *arguments]


@contextmanager
def standalone_cluster(folder: Path, ports: tuple[int, int, int, int]) -> Iterator[str]:
    """A master and two workers of one core each; gives the master's address. `ports`: its, and three of pages."""
    port, page, *pages = ports
    home = {"SPARK_HOME": str(SPARK), "SPARK_WORKER_DIR": str(folder / "work"), "SPARK_DAEMON_MEMORY": "256m"}
    master = f"spark://{LOOPBACK}:{port}"
    with ExitStack() as stack:
        command = spark_class("master.Master", "--host", LOOPBACK, "--port", str(port), "--webui-port", str(page))
        stack.enter_context(server(folder, *command, answers=lambda: serves(f"http://{LOOPBACK}:{page}"), **home))
        for worker in pages:
            sizes = ("--cores", "1", "--memory", "1g", "--host", LOOPBACK, "--webui-port", str(worker))
            command = spark_class("worker.Worker", *sizes, master)
            address = f"http://{LOOPBACK}:{worker}"
            stack.enter_context(server(folder, *command, answers=lambda at=address: serves(at), **home))  # type: ignore[misc]
        yield master


@contextmanager
def object_store(folder: Path, port: int) -> Iterator[dict[str, str]]:
    """A store that speaks S3, with a bucket `lake`; gives the environment in which it is found."""
    python = REPOSITORY / "target" / "moto" / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(python.parent.parent)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", MOTO], check=True)
    address = f"http://{LOOPBACK}:{port}"
    command = (str(python), "-m", "moto.server", "-H", LOOPBACK, "-p", str(port))
    with server(folder, *command, answers=lambda: serves(f"{address}/moto-api")):
        urllib.request.urlopen(urllib.request.Request(f"{address}/lake", method="PUT")).close()
        yield {
            "LAKEHOUSE_S3_ENDPOINT": address,
            "LAKEHOUSE_S3_PATH_STYLE": "true",
            "LAKEHOUSE_WAREHOUSE": "s3://lake/tables",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "key of the tests",
            "AWS_SECRET_ACCESS_KEY": secrets.token_hex(),
        }


@contextmanager
def rest_catalog(folder: Path, port: int, store: dict[str, str]) -> Iterator[str]:
    """A REST catalog (RestCatalog.java) whose tables are in the object store; gives its address."""
    properties = {
        "uri": f"jdbc:sqlite:{folder}/rest.db",
        "jdbc.schema-version": "V1",
        "warehouse": store["LAKEHOUSE_WAREHOUSE"],
        "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        "s3.endpoint": store["LAKEHOUSE_S3_ENDPOINT"],
        "s3.path-style-access": "true",
        "client.region": store["AWS_REGION"],
    }
    jars = f"{JARS}/*:{JARS}/extra/*:{SPARK}/jars/*"
    command = ("java", "-Xmx512m", "-cp", jars, str(REPOSITORY / "tests" / "RestCatalog.java"), str(port))
    told = (f"{name}={value}" for name, value in properties.items())
    address = f"http://{LOOPBACK}:{port}"
    with server(folder, *command, *told, answers=lambda: serves(f"{address}/v1/config"), **store):
        yield address


@contextmanager
def thrift_server(folder: Path, cwd: Path, properties: str, ports: tuple[int, int]) -> Iterator[tuple[int, str]]:
    """Spark's Thrift server, which is a Connect server too; gives the port of the one and the address of the other."""
    thrift, connect = ports
    file = folder / "thrift.properties"
    further = {
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.port": str(connect),
        "spark.hadoop.hive.server2.thrift.port": str(thrift),
        "spark.hadoop.hive.server2.thrift.bind.host": LOOPBACK,
    }
    file.write_text(properties + "".join(f"{name}={value}\n" for name, value in further.items()))
    name = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"
    command = spark_class("SparkSubmit", "--properties-file", str(file), "--class", name, "spark-internal")
    command = ["env", "-C", str(cwd), *command]

    def listens() -> bool:
        with suppress(OSError):
            socket.create_connection((LOOPBACK, thrift)).close()
            return True
        return False

    with server(folder, *command, answers=listens, SPARK_HOME=str(SPARK)):
        yield thrift, f"sc://{LOOPBACK}:{connect}"
