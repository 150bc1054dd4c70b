"""`make sql`: a SQL shell on the lakehouse."""

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress

from scripts.errors import LakehouseError
from scripts.spark import session

TOKENS = re.compile(  # a text, a quoted name or a comment, which may lack its end; a semicolon; anything else
    r"""'(?:\\.|[^'\\])*'?|"(?:\\.|[^"\\])*"?|`[^`]*`?|--[^\n]*|/\*.*?(?:\*/|\Z)|;|[^'"`;/-]+|.""", re.DOTALL
)
COMMENTS = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)


def statements(lines: Iterable[str | None]) -> Iterator[tuple[str, bool]]:
    """SQL statements, each with whether a semicolon ends it; the one that is begun goes where a line is None."""
    text = ""
    for line in lines:
        text = "" if line is None else text + line
        end = 0
        for token in TOKENS.finditer(text) if ";" in (line or "") else ():
            if token[0] == ";":
                yield text[end : token.start()], True
                end = token.end()
        text = text[end:]
    yield text, False


def main() -> int:
    try:
        spark = session()
    except LakehouseError as error:
        print(f"Error: {error}", file=sys.stderr)
        return error.status
    is_terminal = sys.stdin.isatty()
    if is_terminal:
        import readline  # noqa: F401  (line editing and history)

        print(
            "SQL on the lakehouse. A statement ends with a semicolon; Ctrl-C leaves a statement, Ctrl-D the shell."
            " Try: show schemas;"
        )

    def lines() -> Iterator[str | None]:
        while True:
            try:
                yield input("sql> " if is_terminal else "") + "\n"
            except EOFError:
                return
            except KeyboardInterrupt:
                if not is_terminal:
                    raise
                print()
                yield None

    failed = 0
    for statement, is_ended in statements(lines()):
        if not COMMENTS.sub("", statement).strip() or (is_terminal and not is_ended):
            continue
        try:
            spark.sql(statement).show(100, truncate=60)
        except KeyboardInterrupt:
            if not is_terminal:
                raise
            with suppress(Exception):  # a server stops them itself
                spark.sparkContext.cancelAllJobs()
            print("Stopped.", file=sys.stderr)
        except Exception as error:  # whatever is wrong with the statement, the shell goes on
            failed = 1
            print(re.split("\n\nJVM|\n\tat ", str(error))[0].strip(), file=sys.stderr)
    return 0 if is_terminal else failed


if __name__ == "__main__":
    sys.exit(main())
