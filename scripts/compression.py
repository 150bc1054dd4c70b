"""Files as plain bytes, whatever they are compressed with: gzip, zstd, bzip2 or nothing."""

import bz2
import gzip
import io
import re
import zlib
from collections.abc import Iterator
from typing import IO, Any

import zstandard

from scripts.errors import LakehouseError
from scripts.stores import File

GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
BZIP2_MAGIC = re.compile(rb"BZh[1-9]1AY&SY|BZh[1-9]\x17rE8P\x90")


def opened(path: File) -> IO[bytes]:
    file = io.BufferedReader(path.open("rb", buffering=0), 1 << 20)
    magic = file.peek(10)[:4]
    if magic.startswith(GZIP_MAGIC):
        return gzip.GzipFile(fileobj=file)  # type: ignore[return-value]
    if magic == ZSTD_MAGIC:
        return zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True, closefd=True)
    if BZIP2_MAGIC.match(file.peek(10)):
        return _Bzip2(file)  # type: ignore[return-value]
    return file


def is_compressed(path: File) -> bool:
    with opened(path) as file:
        return not isinstance(file, io.BufferedReader)


class _Bzip2:
    """The text of a bzip2 file: of its streams, one after the other, up to where the last one breaks off."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._stream = bz2.BZ2Decompressor()

    def __enter__(self) -> "_Bzip2":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def read1(self, size: int) -> bytes:
        while True:
            packed = b""
            if self._stream.eof:
                packed = self._stream.unused_data or self._file.read1(1 << 20)
                if not packed:
                    return b""
                self._stream = bz2.BZ2Decompressor()
            elif self._stream.needs_input and not (packed := self._file.read1(1 << 20)):
                return b""
            if text := self._stream.decompress(packed, size):
                return text


def skip(file: IO[bytes], size: int, path: File) -> None:
    if isinstance(file, io.BufferedReader):
        file.seek(size)
        return
    while size > 0:
        part = read(file, min(size, 1 << 20), path)
        if not part:
            return
        size -= len(part)


def read(file: IO[bytes], size: int, path: File) -> bytes:
    """Up to `size` bytes; fewer at the end of the file, also where a compressed file breaks off."""
    parts: list[bytes] = []
    while size and (part := block(file, size, path)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def block(file: IO[bytes], size: int, path: File) -> bytes:
    """The next bytes, as one call gives them: a longer read would lose what precedes a break in a compressed file.

    What is compressed may break off at any byte: that is its end.
    """
    try:
        return file.read1(size)  # type: ignore[attr-defined, no-any-return]
    except EOFError:
        return b""
    except (OSError, zlib.error, zstandard.ZstdError) as error:
        if isinstance(error, gzip.BadGzipFile) and str(error).endswith("(b'\\x1f')"):  # one byte of another member
            return b""
        raise LakehouseError(f"{path}: the compressed file is damaged ({error}). Replace it and run again.") from None


def lines(file: IO[bytes], path: File) -> Iterator[bytes]:
    """Lines with their newline; the last one may be without."""
    if isinstance(file, io.BufferedReader):
        yield from file
        return
    rest: list[bytes] = []  # joined once: a long line comes in thousands of blocks
    while text := block(file, 1 << 20, path):
        first, *others = text.split(b"\n")
        rest.append(first)
        if others:
            yield b"".join(rest) + b"\n"
            rest = [others.pop()]
            for line in others:
                yield line + b"\n"
    if last := b"".join(rest):
        yield last
