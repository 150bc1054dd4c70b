"""The benchmark: history and increment, this project against `hand_written.py`, in turn, as whole processes.

`python benchmarks/bench.py [--history 400000] [--increment 10000] [--runs 3] [--work DIR]` prints the wall seconds of
every run, their medians, and the ratios of the medians. Machines are noisy: only figures of one call are compared.
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
FLAGS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"


def seconds(command: list[str], environment: dict[str, str], folder: Path) -> float:
    """Wall time of a whole process; ends the benchmark where it fails."""
    start = time.monotonic()
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True)
    took = time.monotonic() - start
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    return took


def project(folder: Path) -> Path:
    """A copy of the project without models, so that the benchmark's tables stay out of the repository."""
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("macros", "profiles", "docs"):
        shutil.copytree(REPOSITORY / name, folder / name)
    shutil.copy(REPOSITORY / "dbt_project.yml", folder)
    (folder / "models").mkdir()
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--history", type=int, default=400_000)
    parser.add_argument("--increment", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--work", type=Path, default=REPOSITORY / "target" / "bench")
    options = parser.parse_args()
    work: Path = options.work.resolve()
    events = work / "events"
    if not events.exists():
        generate = [sys.executable, str(REPOSITORY / "benchmarks" / "generate.py"), str(events)]
        sizes = ["--history", str(options.history), "--increment", str(options.increment)]
        subprocess.run([*generate, *sizes], check=True)
    jars = os.environ.get("LAKEHOUSE_JARS", str(REPOSITORY / ".venv" / "jars"))
    folder = project(work / "project")
    hand = [sys.executable, str(REPOSITORY / "benchmarks" / "hand_written.py")]
    tuned = ["--jvm-options", FLAGS, "--driver-memory", "2g"]
    figures: dict[tuple[str, str], list[float]] = {}
    for run in range(options.runs):
        lakehouses = {name: work / f"{name}-{run}" for name in ("ours", "hand", "hand_tuned")}
        for lakehouse in lakehouses.values():
            shutil.rmtree(lakehouse, ignore_errors=True)
        shutil.rmtree(folder / "models")
        (folder / "models").mkdir()
        ours = {
            **os.environ,
            "LAKEHOUSE_DIR": str(lakehouses["ours"]),
            "LAKEHOUSE_JARS": jars,
            "LAKEHOUSE_PROJECT": str(folder),
            "PYTHONPATH": str(REPOSITORY),
            "SYSTEM": "bench",
        }
        for phase in ("history", "increment"):
            path = events / phase
            took = {
                "ours": seconds([sys.executable, "-m", "scripts.run"], {**ours, "EVENTS": str(path)}, folder),
                "hand": seconds([*hand, str(lakehouses["hand"]), str(path)], dict(os.environ), work),
                "hand_tuned": seconds([*hand, str(lakehouses["hand_tuned"]), str(path), *tuned], dict(os.environ), work),
            }
            for name, value in took.items():
                figures.setdefault((phase, name), []).append(value)
                print(f"run {run + 1} {phase:9} {name:10} {value:6.1f} s", flush=True)
        for lakehouse in lakehouses.values():
            shutil.rmtree(lakehouse, ignore_errors=True)
    for phase in ("history", "increment"):
        medians = {name: statistics.median(figures[phase, name]) for name in ("ours", "hand", "hand_tuned")}
        ours_median = medians.pop("ours")
        print(f"{phase}: ours {ours_median:.1f} s")
        for name, median in medians.items():
            print(f"{phase}: {name} {median:.1f} s, ratio {ours_median / median:.2f}")


if __name__ == "__main__":
    main()
