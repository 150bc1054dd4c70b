"""The demo as a new user runs it, twice: the second run changes nothing; then the docs site."""

import shutil
import subprocess
import sys
from pathlib import Path

from scripts.spark import PROFILES, PROJECT, lakehouse_dir


def run(*command: str) -> str:
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout}\n{done.stderr}")
    return done.stdout


def state(folder: Path) -> list[str]:
    """The table files of the lakehouse: every commit of a table or a view adds one."""
    return sorted(str(path) for path in folder.rglob("*.metadata.json"))


def main() -> int:
    folder = lakehouse_dir()
    shutil.rmtree(folder, ignore_errors=True)
    first = run(sys.executable, "-m", "scripts.run")
    print(first)
    before = state(folder)
    models = subprocess.run(["git", "status", "--porcelain", "models"], cwd=PROJECT, capture_output=True, text=True).stdout
    second = run(sys.executable, "-m", "scripts.run")
    problems = []
    if "Nothing new to build." not in second:
        problems.append(f"the second run built something:\n{second}")
    if state(folder) != before or not before:
        problems.append("the second run changed tables or views")
    if models.strip():
        problems.append(f"the demo's models are not what the scaffold writes:\n{models}")
    dbt = str(Path(sys.executable).parent / "dbt")
    run(dbt, "docs", "generate", "--static", "--quiet", "--profiles-dir", str(PROFILES))
    page = PROJECT / "target" / "static_index.html"
    if not page.exists() or "shop__customers" not in page.read_text(encoding="utf-8"):
        problems.append("the docs site lacks the demo's models")
    shutil.rmtree(folder, ignore_errors=True)
    for problem in problems:
        print(f"Error: {problem}", file=sys.stderr)
    if not problems:
        print("The demo ran twice, the second time without a change, and the docs site was written.")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
