"""One JVM for all processes of a test run: Spark's classes are loaded and compiled once.

Each process has a session of its own in it, and in that a catalog of its own.
"""

import fcntl
import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def session_in_one_jvm(folder: Path, jars: Sequence[Path]) -> Any:
    """The Spark session of this process, in the JVM that the first one starts and that ends with the last one.

    Args:
        folder: the same for all processes.
    """
    from pyspark import SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    from scripts.spark import lakehouse_dir, settings

    lakehouse_dir().mkdir(parents=True, exist_ok=True)
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if is_first := not _holds(folder / "stdin"):
            _start(folder, {**settings(), "spark.jars": ",".join(map(str, jars))})
        port, secret = (folder / "place").read_text().split()
        os.environ |= {"PYSPARK_GATEWAY_PORT": port, "PYSPARK_GATEWAY_SECRET": secret}
        gateway = launch_gateway()
        del os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"]  # not for processes of tests
        jvm: Any = gateway.jvm
        running = jvm.JavaSparkContext.fromSparkContext(jvm.org.apache.spark.SparkContext.getOrCreate())
        context = SparkContext(gateway=gateway, jsc=running)
        if is_first:
            _forget_defaults_of_hadoop(jvm, running)
        for form in ("short", "long"):  # else Spark looks through the stack for each of its jobs
            context.setLocalProperty(f"callSite.{form}", "test")
        first = SparkSession._get_j_spark_session_class(jvm).builder().getOrCreate()
        if is_first:
            for of_web_page in (running.sc().statusStore(), first.sharedState().statusStore()):
                running.sc().listenerBus().removeListener(of_web_page.listener().get())
        return _another(context, first)


def another_session(spark: Any) -> Any:
    """A further session of this process, as `SparkSession.newSession`, which would be on the catalog of the JVM."""
    return _another(spark.sparkContext, spark._jsparkSession)


def _another(context: Any, session: Any) -> Any:
    from pyspark.sql import SparkSession

    from scripts.spark import settings

    own = {name: value for name, value in settings().items() if name.startswith("spark.sql.")}
    return SparkSession(context, session.newSession(), own)


def _forget_defaults_of_hadoop(jvm: Any, context: Any) -> None:
    """Iceberg sends Hadoop's settings along with each scan: a thousand, which are what Hadoop has without them."""
    from scripts.spark import settings

    for part in ("mapred.JobConf", "hdfs.HdfsConfiguration"):  # whose defaults would come when they are first used
        getattr(jvm, "java.lang.Class").forName(f"org.apache.hadoop.{part}")
    hadoop = context.hadoopConfiguration()
    hadoop.clear()
    for name, value in settings().items():
        if name.startswith("spark.hadoop."):
            hadoop.set(name.removeprefix("spark.hadoop."), value)


def _holds(stdin: Path) -> bool:
    """Hold the standard input of the JVM open: it ends when no process does. False: there is no JVM."""
    try:
        os.open(stdin, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return False
    return True


def _start(folder: Path, given: Mapping[str, str]) -> None:
    """Start a JVM as PySpark does, and note the port and the secret."""
    from pyspark.find_spark_home import _find_spark_home
    from pyspark.serializers import UTF8Deserializer, read_int

    stdin, told = folder / "stdin", folder / "told"
    for path in (stdin, told):
        path.unlink(missing_ok=True)
    os.mkfifo(stdin)
    reader = os.open(stdin, os.O_RDONLY | os.O_NONBLOCK)
    assert _holds(stdin)
    os.set_blocking(reader, True)
    arguments = [part for name, value in given.items() for part in ("--conf", f"{name}={value}")]
    environment = {**os.environ, "SPARK_CONNECT_MODE": "0", "_PYSPARK_DRIVER_CONN_INFO_PATH": str(told)}
    command = [f"{_find_spark_home()}/bin/spark-submit", *arguments, "pyspark-shell"]
    with (folder / "log").open("wb") as log:
        java = subprocess.Popen(command, stdin=reader, stdout=log, stderr=log, env=environment, start_new_session=True)
    os.close(reader)
    while not told.exists():
        assert java.poll() is None, (folder / "log").read_text()
        time.sleep(0.1)
    with told.open("rb") as file:
        (folder / "place").write_text(f"{read_int(file)} {UTF8Deserializer().loads(file)}")
