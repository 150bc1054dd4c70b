"""A real Kafka of one node on the loopback interface, for tests."""

from __future__ import annotations

import base64
import json
import os
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent / "broker"
LOOPBACK = "127.0.0.1"
USER, PASSWORD = "reader", "canary-of-the-reader"
STORE_PASSWORD = "canary-of-the-store"


class BrokerError(Exception):
    """The broker did not start, or refused a command."""


def missing_programs() -> list[str]:
    """What a machine lacks to run the broker: commands, with their Debian packages."""
    wanted = {"javac": "openjdk-17-jdk-headless", "mvn": "maven"}
    return [f"{name} (apt-get install {package})" for name, package in wanted.items() if shutil.which(name) is None]


def class_path(pom: Path, folder: Path, *arguments: str) -> str:
    """The class path of a POM, resolved and downloaded by Maven."""
    answer = folder / "class-path"
    command = [
        "mvn",
        "--quiet",
        "--batch-mode",
        "--file",
        str(pom),
        "dependency:build-classpath",
        f"-Dmdep.outputFile={answer}",
    ]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True)
    if done.returncode or not answer.exists():
        raise BrokerError(f"Maven could not resolve {pom}:\n{done.stdout}{done.stderr}")
    return answer.read_text().strip()


class Broker:
    """A broker with two listeners: `servers`, open to everybody, and `secured`, by TLS and a password
    (`client_properties`).
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        open_port, secured_port, controller_port = _free_ports(3)
        self.servers, self.secured = f"{LOOPBACK}:{open_port}", f"{LOOPBACK}:{secured_port}"
        store = self._key_store()
        jaas = "org.apache.kafka.common.security.plain.PlainLoginModule required"
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@{LOOPBACK}:{controller_port}",
            "listeners": f"OPEN://{self.servers},SECURED://{self.secured},CONTROLLER://{LOOPBACK}:{controller_port}",
            "advertised.listeners": f"OPEN://{self.servers},SECURED://{self.secured}",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "OPEN",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,OPEN:PLAINTEXT,SECURED:SASL_SSL",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.secured.plain.sasl.jaas.config": f'{jaas} user_{USER}="{PASSWORD}";',
            "ssl.keystore.location": str(store),
            "ssl.keystore.password": STORE_PASSWORD,
            "log.dirs": str(folder / "data"),
            "log.retention.ms": "-1",  # events have times of long ago
            "log.cleaner.backoff.ms": "100",
            "message.max.bytes": str(64 << 20),
            "auto.create.topics.enable": "false",
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "1",
        }
        self.client_properties = {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": f'{jaas} username="{USER}" password="{PASSWORD}";',
            "ssl.truststore.location": str(store),
            "ssl.truststore.password": STORE_PASSWORD,
            "ssl.endpoint.identification.algorithm": "",
        }
        properties = folder / "broker.properties"
        properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        options = ["-Xmx512m", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
        command = ["java", *options, "-cp", class_path(HERE / "pom.xml", folder), str(HERE / "Broker.java")]
        with (folder / "broker.log").open("ab") as log:
            self._process = subprocess.Popen(
                [*command, str(properties), self.servers],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self._answer()

    def stop(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def do(self, what: str, topic: str = "", **arguments: Any) -> None:
        """Send a command of `Broker.java` and wait until it is done."""
        assert self._process.stdin
        self._process.stdin.write(json.dumps({"do": what, "topic": topic, **arguments}) + "\n")
        self._process.stdin.flush()
        self._answer()

    def create(self, topic: str, partitions: int = 1, **settings: str) -> None:
        """Create a topic; settings with `_` for `.` in their names."""
        self.do(
            "create",
            topic,
            partitions=partitions,
            settings={name.replace("_", "."): value for name, value in settings.items()},
        )

    def produce(self, records: list[dict[str, Any]], what: str = "produce", **arguments: Any) -> None:
        """Write records to their topics, in their order: topic, partition, timestamp, headers, key and value (text or
        bytes).
        """
        file = self.folder / "records.jsonl"
        with file.open("w") as lines:
            for record in records:
                kept = {
                    name: record[name] for name in ("topic", "partition", "timestamp") if record.get(name) is not None
                }
                kept |= {name: _base64(record[name]) for name in ("key", "value")}
                kept["headers"] = [[name, _base64(value)] for name, value in record.get("headers") or []]
                lines.write(json.dumps(kept) + "\n")
        self.do(what, file=str(file), **arguments)

    def _answer(self) -> None:
        assert self._process.stdout
        answer = self._process.stdout.readline().strip()
        if answer != "ok":
            log = (self.folder / "broker.log").read_text(errors="replace")
            raise BrokerError(f"{answer or 'the broker ended'}; its log ends with:\n{log[-3000:]}")

    def _key_store(self) -> Path:
        store = self.folder / "store.p12"
        names = ["-alias", "broker", "-dname", "CN=localhost", "-keyalg", "RSA", "-validity", "30"]
        keytool = shutil.which("keytool") or str(Path(os.environ.get("JAVA_HOME", "/usr")) / "bin" / "keytool")
        command = [
            keytool,
            "-genkeypair",
            *names,
            "-storetype",
            "PKCS12",
            "-keystore",
            str(store),
            "-storepass",
            STORE_PASSWORD,
        ]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise BrokerError(f"keytool: {done.stdout}{done.stderr}")
        return store


def _base64(content: str | bytes | None) -> str | None:
    if content is None:
        return None
    return base64.b64encode(content.encode() if isinstance(content, str) else content).decode()


def _free_ports(number: int) -> list[int]:
    probes = [socket.socket() for _ in range(number)]
    try:
        for probe in probes:
            probe.bind((LOOPBACK, 0))
        return [probe.getsockname()[1] for probe in probes]
    finally:
        for probe in probes:
            probe.close()
