"""`make sql`: a SQL shell on the lakehouse."""

import re
import sys
from collections.abc import Iterator

from scripts.errors import LakehouseError
from scripts.spark import session


def statements(lines: Iterator[str]) -> Iterator[str]:
    """SQL statements: what stands before a semicolon at the end of a line."""
    statement = ""
    for line in lines:
        statement += line
        if statement.rstrip().endswith(";"):
            yield statement.rstrip().rstrip(";")
            statement = ""
    if statement.strip():
        yield statement


def main() -> int:
    try:
        spark = session()
    except LakehouseError as error:
        print(f"Error: {error}", file=sys.stderr)
        return error.status
    is_terminal = sys.stdin.isatty()
    if is_terminal:
        import readline  # noqa: F401  (line editing and history)

        print("SQL on the lakehouse. A statement ends with a semicolon; Ctrl-D leaves. Try: show schemas;")

    def lines() -> Iterator[str]:
        while True:
            try:
                yield input("sql> " if is_terminal else "") + "\n"
            except EOFError:
                return

    failed = 0
    for statement in statements(lines()):
        if not statement.strip():
            continue
        try:
            spark.sql(statement).show(100, truncate=60)
        except Exception as error:  # whatever is wrong with the statement, the shell goes on
            failed = 1
            print(re.split("\n\nJVM|\n\tat ", str(error))[0].strip(), file=sys.stderr)
    return 0 if is_terminal else failed


if __name__ == "__main__":
    sys.exit(main())
