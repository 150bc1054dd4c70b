"""dbt on an empty lakehouse; the demo as a new user runs it, twice: the second run changes nothing; dbt's tests; the
docs site.

All in one process, so that Spark starts once.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from scripts.arguments import DEMO
from scripts.check import dbt, run, test
from scripts.spark import PROJECT, lakehouse_dir


def state(folder: Path) -> list[str]:
    """The table files of the lakehouse: every commit of a table or a view adds one."""
    return sorted(str(path) for path in folder.rglob("*.metadata.json"))


def not_shown(output: str) -> list[str]:
    """Lines of the README's sample that the demo does not print. The lag depends on the day."""

    def without_lag(line: str) -> str:
        return re.sub(r" (lag|-|(< )?\d+ (d|h|min|s))$", "", " ".join(line.split()))

    sample = (PROJECT / "README.md").read_text(encoding="utf-8").split("```\nmake run\n```")[1].split("```")[1]
    printed = {without_lag(line) for line in output.splitlines()}
    return [line for line in sample.splitlines() if without_lag(line) not in printed | {"…"}]


def main() -> int:
    os.chdir(PROJECT)
    folder = lakehouse_dir()
    shutil.rmtree(folder, ignore_errors=True)
    before_landing = dbt("run")
    first = run()
    before = state(folder)
    models = subprocess.run(
        ["git", "status", "--porcelain", "models"], cwd=PROJECT, capture_output=True, text=True
    ).stdout
    second = run()
    problems = [f"the README shows a line that the demo does not print: {line}" for line in not_shown(first)]
    if not any("no events have landed yet: run `make run`" in line for line in before_landing):
        problems.append(f"dbt run before anything has landed does not say so: {before_landing}")
    if "Nothing new to build." not in second:
        problems.append(f"the second run built something:\n{second}")
    if state(folder) != before or not before:
        problems.append("the second run changed tables or views")
    if models.strip():
        problems.append(f"the demo's models are not what the scaffold writes:\n{models}")
    problems += dbt("seed")
    problems += test(PROJECT / "models", DEMO)
    problems += dbt("docs", "generate", "--static")
    page = PROJECT / "target" / "static_index.html"
    if not page.exists() or "shop__customers" not in page.read_text(encoding="utf-8"):
        problems.append("the docs site lacks the demo's models")
    for problem in problems:
        print(f"Error: {problem}", file=sys.stderr)
    if problems:
        print(f"Spark's messages are in {folder / 'spark.log'}.", file=sys.stderr)
    else:
        shutil.rmtree(folder, ignore_errors=True)
        print("The demo ran twice, the second time without a change; dbt's tests passed and the docs site was written.")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
