"""The benchmark: this project against `hand_written.py`, in turn, as whole processes.

    python benchmarks/bench.py [--history 400000] [--increment 10000] [--runs 3] [--against CHECKOUT] [--histories]
    [--ours-only] [--work DIR]

prints the wall seconds of every run, their medians, and the ratios of the medians. Machines are noisy: only figures of
one
call are compared. The phases of a run, each on the lakehouse that the one before has left:

- history: files to live rows, with the environment there and no models yet
- increment: the same of more events, in a fresh process
- idle table: what one more silver model costs with nothing new, in a warm dbt process
- resident: the same of more events, once on a server that has just been started (first) and once more (warm)
- new column: an increment in a fresh process, in which one of the four tables has a column more

`histories` is this project with a history of each of the four tables (`--histories`).
`hand` is the hand-written job with the JVM's defaults, `hand tuned` with this project's flags and heap; both get the
jars as this project does, so none looks a package up. `--against` adds another checkout of this project, to see what a
change costs; `--ours-only` leaves the hand-written job out.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
JARS = os.environ.get("LAKEHOUSE_JARS", str(REPOSITORY / ".venv" / "jars"))
# profiles.yml
FLAGS = "-XX:TieredStopAtLevel=1 -XX:-DontCompileHugeMethods -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m -Xms2g"
HAND = {"hand": [], "hand tuned": ["--jvm-options", FLAGS, "--driver-memory", "2g"]}
IDLE = """
import time
from dbt.cli.main import dbtRunner

def took(*tables):
    start = time.monotonic()
    assert dbtRunner().invoke(["run", "--quiet", "--select", *tables]).success
    return time.monotonic() - start

tables = [f"bench__t{number}" for number in (1, 2, 3, 4)]
took(*tables)
print((min(took(*tables) for _ in range(3)) - min(took(tables[0]) for _ in range(3))) / 3)
"""


def finished(command: list[str], environment: dict[str, str], folder: Path) -> str:
    """What a process prints; ends the benchmark where it fails."""
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    return done.stdout


class Project:
    """A copy of a checkout without models, so that the benchmark's tables stay out of it."""

    def __init__(self, checkout: Path, folder: Path) -> None:
        self.folder = folder
        shutil.rmtree(folder, ignore_errors=True)
        for name in ("macros", "profiles", "docs", "seeds"):
            if (checkout / name).exists():
                shutil.copytree(checkout / name, folder / name)
        shutil.copy(checkout / "dbt_project.yml", folder)
        (folder / "models").mkdir()
        self.environment = {
            **os.environ,
            "LAKEHOUSE_DIR": str(folder / "lakehouse"),
            "LAKEHOUSE_JARS": JARS,
            "LAKEHOUSE_PROJECT": str(folder),
            "DBT_PROFILES_DIR": str(folder / "profiles"),
            "PYTHONPATH": str(checkout),
            "SYSTEM": "bench",
        }

    def do(self, *command: str, events: Path | None = None) -> str:
        given = {"EVENTS": str(events)} if events else {}
        return finished([sys.executable, *command], {**self.environment, **given}, self.folder)


class Figures:
    """Seconds by phase and contender, printed as they come."""

    def __init__(self) -> None:
        self.seconds: dict[tuple[str, str], list[float]] = {}

    def add(self, phase: str, name: str, seconds: float) -> None:
        self.seconds.setdefault((phase, name), []).append(seconds)
        print(f"{phase:15} {name:10} {seconds:6.2f} s", flush=True)

    def time(self, phase: str, name: str, command: list[str], environment: dict[str, str], folder: Path) -> None:
        start = time.monotonic()
        finished(command, environment, folder)
        self.add(phase, name, time.monotonic() - start)

    def medians(self, base: dict[str, str]) -> None:
        """Prints each phase's medians, with their ratios to ours.

        `base`: the phase of the others that a phase is compared with.
        """
        medians = {key: statistics.median(values) for key, values in self.seconds.items()}
        for phase in dict.fromkeys(phase for phase, _ in medians):
            ours = medians[phase, "ours"]
            of_others = {
                name: value for (p, name), value in medians.items() if p == base.get(phase, phase) and name != "ours"
            }
            of_others |= {name: value for (p, name), value in medians.items() if p == phase and name != "ours"}
            others = "".join(f"; {name} {value:.2f} s, ratio {ours / value:.2f}" for name, value in of_others.items())
            print(f"{phase}: ours {ours:.2f} s{others}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--history", type=int, default=400_000)
    parser.add_argument("--increment", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--ours-only", action="store_true")
    parser.add_argument("--histories", action="store_true")
    parser.add_argument("--work", type=Path, default=REPOSITORY / "target" / "bench")
    options = parser.parse_args()
    work: Path = options.work.resolve()
    events = work / f"events-{options.history}-{options.increment}"
    if not events.exists():
        generate = [sys.executable, str(REPOSITORY / "benchmarks" / "generate.py"), str(events)]
        sizes = ["--history", str(options.history), "--increment", str(options.increment)]
        subprocess.run([*generate, *sizes], check=True)
    figures = Figures()
    for _ in range(options.runs):
        projects = {"ours": Project(REPOSITORY, work / "ours")}
        if options.against:
            projects["against"] = Project(options.against.resolve(), work / "against")
        if options.histories:
            projects["histories"] = Project(REPOSITORY, work / "histories")
            projects["histories"].environment["HISTORY"] = "t1 t2 t3 t4"
        hands = {} if options.ours_only else {name: work / name.replace(" ", "-") for name in HAND}
        for lakehouse in hands.values():
            shutil.rmtree(lakehouse, ignore_errors=True)
        for phase, path in {"history": events / "history", "increment": events / "increment-1"}.items():
            for name, project in projects.items():
                environment = {**project.environment, "EVENTS": str(path)}
                figures.time(phase, name, [sys.executable, "-m", "scripts.run"], environment, project.folder)
            for name, lakehouse in hands.items():
                job = [sys.executable, str(REPOSITORY / "benchmarks" / "hand_written.py"), str(lakehouse), str(path)]
                job += ["--class-path", f"{JARS}/*", *HAND[name]]
                figures.time(phase, name, job, dict(os.environ), work)
        for name, project in projects.items():
            figures.add("idle table", name, float(project.do("-c", IDLE).split()[-1]))
            project.do("-m", "scripts.server", "up")
            try:
                for phase, path in {
                    "resident, first": events / "increment-2",
                    "resident, warm": events / "increment-3",
                }.items():
                    environment = {**project.environment, "EVENTS": str(path)}
                    figures.time(phase, name, [sys.executable, "-m", "scripts.run"], environment, project.folder)
            finally:
                project.do("-m", "scripts.server", "down")
            environment = {**project.environment, "EVENTS": str(events / "increment-4")}
            figures.time("new column", name, [sys.executable, "-m", "scripts.run"], environment, project.folder)
    figures.medians(base={"resident, first": "increment", "resident, warm": "increment", "new column": "increment"})


if __name__ == "__main__":
    main()
