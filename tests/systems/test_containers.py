"""docs/containers.md: its commands in a project that cannot be written, as a user without a name or a HOME."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import REPOSITORY
from event_factory import created

PAGE = (REPOSITORY / "docs" / "containers.md").read_text(encoding="utf-8")
USER = 54321  # who is in no list of users
# Airflow is not there: of it the page needs these.
AIRFLOW = """
import sys
from types import SimpleNamespace
sys.modules["airflow.exceptions"] = SimpleNamespace(AirflowFailException=SystemExit)
sys.modules["airflow.sdk"] = SimpleNamespace(task=lambda **_: lambda function: function)
"""


def block(heading: str) -> str:
    """The first block of code below a heading."""
    return PAGE.split(f"## {heading}\n")[1].split("```")[1].partition("\n")[2]


class Image:
    """What the Containerfile makes: the project, with models of one system, and a folder for the data.

    Root becomes another user, who may read everything: the Python of the tests may be in a folder of root's own.
    """

    def __init__(self, folder: Path) -> None:
        self.project, self.data, self.events = folder / "opt", folder / "data", folder / "events"
        for name in ("macros", "profiles", "docs", "seeds", "scripts"):
            shutil.copytree(REPOSITORY / name, self.project / name)
        shutil.copy(REPOSITORY / "dbt_project.yml", self.project)
        for path in (REPOSITORY / "models").glob("*/lindorm*"):
            copy = self.project / "models" / path.parent.name / path.name
            copy.parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if path.is_dir() else shutil.copy)(path, copy)
        (self.project / ".venv").symlink_to(REPOSITORY / ".venv")
        self.data.mkdir()
        self.events.mkdir()
        shutil.copy(REPOSITORY / "samples" / "lindorm.jsonl", self.events)
        self.prefix: list[str] = []
        if os.geteuid() == 0:
            os.chown(self.data, USER, USER)
            self.prefix = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]
            reads_all = ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
            if subprocess.run([*self.prefix, *reads_all, "true"], capture_output=True).returncode == 0:
                self.prefix += reads_all
        subprocess.run(["chmod", "-R", "a+rX,a-w", str(self.project)], check=True)

    def run(self, command: list[str]) -> tuple[int, str]:
        environment = {
            "PATH": "/usr/bin:/bin",
            **{name: os.environ[name] for name in ("JAVA_HOME",) if name in os.environ},
        }
        done = subprocess.run(
            [*self.prefix, *command],
            cwd="/",
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        return done.returncode, done.stdout

    def placed(self, text: str) -> str:
        """With the folders of the page where they are here, and the system that has models."""
        for name, path in {"/opt/lakehouse": self.project, "/srv/events": self.events, "/data": self.data}.items():
            text = text.replace(name, str(path))
        return re.sub(r"\bcrm\b", "lindorm", text)


@pytest.fixture
def image() -> Iterator[Image]:
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield Image(folder)
    subprocess.run(["chmod", "-R", "u+w", str(folder)], check=True)
    shutil.rmtree(folder)


@pytest.mark.soak
def test_commands_of_the_page_in_a_project_that_cannot_be_written(image: Image) -> None:
    before = sorted(path for path in image.project.rglob("*"))
    (image.events / "other.jsonl").write_text(json.dumps(created(10, id=1)) + "\n")
    _, command = image.placed(block("cron")).strip().split(" * * * * ")
    status, told = image.run(["sh", "-c", command])
    log = (image.data / "cron.log").read_text(encoding="utf-8")
    assert (status, told) == (0, f"lakehouse: status 3, see {image.data}/cron.log\n"), log
    assert "lacks models for what has landed of public.orders. It stays in bronze." in log
    assert re.search(r"^ld-demo01\.energy\.meters +lindorm\.meters +9 ", log, re.MULTILINE), log
    assert {"target", "logs", "warehouse", "spark.log"} <= {path.name for path in image.data.iterdir()}

    program = AIRFLOW + image.placed(block("Airflow")) + "\nlakehouse()\n"
    status, told = image.run([sys.executable, "-c", program])
    assert status == 0, told
    assert "lacks models for what has landed of public.orders." in told and "Nothing new to build." in told
    program = program.replace('"SYSTEM": "lindorm"', '"SYSTEM": "Lindorm"')
    assert image.run([sys.executable, "-c", program])[0] == 1  # AirflowFailException
    assert sorted(path for path in image.project.rglob("*")) == before

    settings = dict(re.findall(r"(\w+)=(\S+)", re.findall(r"^ENV (.*)$", image.placed(PAGE), re.MULTILINE)[0]))
    given = [f"{name}={value}" for name, value in settings.items()]
    entry, module = (
        json.loads(found) for found in re.findall(r"^(?:ENTRYPOINT|CMD) (.*)$", image.placed(PAGE), re.MULTILINE)
    )
    status, told = image.run(["env", *given, "LAKEHOUSE_DIR=/proc/no", "SYSTEM=lindorm", *entry, *module])
    problem = "LAKEHOUSE_DIR=/proc/no cannot be written by this user. Name another folder."
    assert (status, told) == (2, f"\nError: {problem}\n")
    status, told = image.run(["env", *given, "EVENTS=/nowhere", "SYSTEM=lindorm", *entry, *module])
    assert status == 2 and told.strip() == (
        "Error: EVENTS=/nowhere: there is no such file, folder or match. Name a file, a folder or a glob of JSON Lines"
        " files."
    )
