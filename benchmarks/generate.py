"""Generate the events of the benchmarks: a PostgreSQL connector's Kafka records as JSON Lines.

    python benchmarks/generate.py OUT_DIR --history 400000 --increment 10000

writes `OUT_DIR/history/*.jsonl`, and `OUT_DIR/increment-1/*.jsonl` to `OUT_DIR/increment-4/*.jsonl`; in the last one
table t1 has a column more. Every line is one Kafka record `{topic, partition, offset, timestamp, headers, key,
value}`; key and value are the JSON text of Kafka Connect's JsonConverter, with their schema blocks, so a value takes
about 3.7 KB. The four tables t1 to t4 have the same ten columns and REPLICA IDENTITY DEFAULT. Tombstones come on top
of the number of events asked for. The same arguments give the same bytes.
"""

import argparse
import json
from base64 import b64encode
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from random import Random

PREFIX = "bench"
TABLES = ("t1", "t2", "t3", "t4")
PARTITIONS = 2
HISTORY_FILES = 8
INCREMENT_FILES = 1
INCREMENTS = 3
RECENT_KEYS = 500
MAX_ROWS_PER_TRANSACTION = 8
UNAVAILABLE = '"__debezium_unavailable_value"'
UNAVAILABLE_SHARE = 0.005
REINSERT_SHARE = 0.02
WORDS = ["amber", "brisk", "cedar", "'delta'", '"ember"', "Käse", "λ", "東京", "C:\\tmp", "line\nfeed"]
EPOCH = datetime(1970, 1, 1)
START_US = 1_735_689_600_000_000  # 2025-01-01T00:00:00Z

# A delete's `before`, less its key: the log holds the key only, and Debezium invents the NOT NULL columns.
INVENTED = (
    '"name":"","amount":"AA==","quantity":null,"is_active":false,"ordered_on":null,'
    '"changed_at":0,"created_at":"1970-01-01T00:00:00Z","score":null,"note":null'
)


@dataclass(frozen=True)
class Mix:
    """Shares of creates and deletes (updates are the rest); `recent` of the latter two hit a recent key."""

    creates: float
    deletes: float
    recent: float


HISTORY = Mix(creates=0.40, deletes=0.10, recent=0.40)  # of 60 % of the events: a quarter of all
INCREMENT = Mix(creates=0.30, deletes=0.10, recent=0.0)


def column(kind: str, name: str, optional: bool = False, /, **semantics: object) -> dict[str, object]:
    """One field of a schema block, its members in the order in which the JsonConverter writes them."""
    return {"type": kind, "optional": optional, **semantics, "field": name}


def struct(fields: list[dict[str, object]], optional: bool, name: str, **rest: object) -> dict[str, object]:
    """One struct of a schema block."""
    return {"type": "struct", "fields": fields, "optional": optional, "name": name, **rest}


KEY_COLUMN = column("int64", "id")
ROW = [
    KEY_COLUMN,
    column("string", "name"),
    column(
        "bytes",
        "amount",
        name="org.apache.kafka.connect.data.Decimal",
        version=1,
        parameters={"scale": "2", "connect.decimal.precision": "12"},
    ),
    column("int32", "quantity", True),
    column("boolean", "is_active"),
    column("int32", "ordered_on", True, name="io.debezium.time.Date", version=1),
    column("int64", "changed_at", name="io.debezium.time.MicroTimestamp", version=1),
    column("string", "created_at", name="io.debezium.time.ZonedTimestamp", version=1),
    column("double", "score", True),
    column("string", "note", True),
]
SNAPSHOT_VALUES = "true,first,first_in_data_collection,last_in_data_collection,last,false,incremental"
SOURCE = [
    column("string", "version"),
    column("string", "connector"),
    column("string", "name"),
    column("int64", "ts_ms"),
    column(
        "string",
        "snapshot",
        True,
        name="io.debezium.data.Enum",
        version=1,
        parameters={"allowed": SNAPSHOT_VALUES},
        default="false",
    ),
    column("string", "db"),
    column("string", "sequence", True),
    column("string", "schema"),
    column("string", "table"),
    column("int64", "txId", True),
    column("int64", "lsn", True),
    column("int64", "xmin", True),
]
TRANSACTION = [
    column("string", "id"),
    column("int64", "total_order"),
    column("int64", "data_collection_order"),
]


def envelope_schema(topic: str, row: list[dict[str, object]]) -> dict[str, object]:
    """The schema block of a table's change events."""
    return struct(
        [
            struct(row, True, f"{topic}.Value", field="before"),
            struct(row, True, f"{topic}.Value", field="after"),
            struct(SOURCE, False, "io.debezium.connector.postgresql.Source", version=1, field="source"),
            struct(TRANSACTION, True, "event.block", version=1, field="transaction"),
            column("string", "op"),
            column("int64", "ts_ms", True),
        ],
        False,
        f"{topic}.Envelope",
        version=2,
    )


def quoted_schema(schema: dict[str, object]) -> str:
    """A record's text up to its payload, escaped once for the JSON string that holds the record."""
    text = json.dumps({"schema": schema}, separators=(",", ":"))
    return json.dumps(f'{text[:-1]},"payload":')[:-1]


@dataclass
class Table:
    """The state of one source table: which keys live, and how far its topic has been written."""

    name: str
    next_id: int = 1
    live: list[int] = field(default_factory=list)
    place: dict[int, int] = field(default_factory=dict)
    deleted: list[int] = field(default_factory=list)
    recent: deque[int] = field(default_factory=lambda: deque(maxlen=RECENT_KEYS))
    offsets: list[int] = field(default_factory=lambda: [0] * PARTITIONS)

    def __post_init__(self) -> None:
        self.topic = f"{PREFIX}.public.{self.name}"
        self.key_head = quoted_schema(struct([KEY_COLUMN], False, f"{self.topic}.Key"))
        self.value_head = quoted_schema(envelope_schema(self.topic, ROW))
        self.further = ""

    def add_column(self) -> None:
        """What `ALTER TABLE … ADD COLUMN label varchar` does."""
        self.value_head = quoted_schema(envelope_schema(self.topic, [*ROW, column("string", "label", True)]))
        self.further = ',"label":"new"'

    def insert(self, rng: Random) -> int:
        """A new key; now and then one that was deleted before."""
        if self.deleted and rng.random() < REINSERT_SHARE:
            key = self.deleted.pop(int(rng.random() * len(self.deleted)))
        else:
            key = self.next_id
            self.next_id += 1
        self.place[key] = len(self.live)
        self.live.append(key)
        return key

    def pick(self, rng: Random, recent: float) -> int:
        """A living key, by the given share one of those touched last."""
        if rng.random() < recent:
            key = self.recent[int(rng.random() * len(self.recent))]
            if key in self.place:
                return key
        return self.live[int(rng.random() * len(self.live))]

    def delete(self, key: int) -> None:
        """Forget a living key."""
        place, last = self.place.pop(key), self.live.pop()
        if last != key:
            self.live[place] = last
            self.place[last] = place
        self.deleted.append(key)

    def record(self, key: int, timestamp: int, value: str) -> str:
        """One line: the Kafka record of a key. `value` is its value as a JSON string, or null."""
        partition = key % PARTITIONS
        offset = self.offsets[partition]
        self.offsets[partition] = offset + 1
        return (
            f'{{"topic":"{self.topic}","partition":{partition},"offset":{offset},"timestamp":{timestamp},'
            f'"headers":[],"key":{self.key_head}{{\\"id\\":{key}}}}}","value":{value}}}\n'
        )


class Database:
    """A database with a connector on it, which writes its changes in commit order."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.tables = [Table(name) for name in TABLES]
        self.clock_us = START_US
        self.transaction = 700
        self.lsn = 23_803_720
        self.last_commit: int | None = None
        self.names = self._texts(500, 2, 4)
        self.notes = self._texts(990, 3, 14) + self._texts(10, 300, 400)  # ten are long enough for TOAST

    def lines(self, events: int, mix: Mix) -> Iterator[str]:
        """The records of so many change events, tombstones besides, in transactions of several rows."""
        rng = self.rng
        while events > 0:
            rows = min(events, 1 + int(rng.random() * MAX_ROWS_PER_TRANSACTION))
            events -= rows
            self.transaction += 1
            self.clock_us += 1_000 + int(rng.random() * 400_000)
            for _ in range(rows):
                yield from self._change(rng.choice(self.tables), mix)
            self.lsn += 48
            self.last_commit = self.lsn

    def _change(self, table: Table, mix: Mix) -> Iterator[str]:
        rng = self.rng
        choice = rng.random()
        self.lsn += 56 + 8 * int(rng.random() * 40)
        before = after = "null"
        if choice < mix.creates or not table.live:
            op, key = "c", table.insert(rng)
            after = self._row(key, False, table.further)
        elif choice < mix.creates + mix.deletes:
            op, key = "d", table.pick(rng, mix.recent)
            table.delete(key)
            before = f'{{"id":{key},{INVENTED}}}'
        else:
            op, key = "u", table.pick(rng, mix.recent)
            after = self._row(key, rng.random() < UNAVAILABLE_SHARE, table.further)
        table.recent.append(key)

        committed, seen = self.clock_us, self.clock_us + 20_000 + int(rng.random() * 900_000)
        sequence = "[null" if self.last_commit is None else f'[\\"{self.last_commit}\\"'
        payload = (
            f'{{"before":{before},"after":{after},"source":{{"version":"2.4.0.Final","connector":"postgresql",'
            f'"name":"{PREFIX}","ts_ms":{committed // 1000},"snapshot":"false","db":"{PREFIX}",'
            f'"sequence":"{sequence},\\"{self.lsn}\\"]",'
            f'"schema":"public","table":"{table.name}","txId":{self.transaction},"lsn":{self.lsn},'
            f'"xmin":null}},"transaction":null,"op":"{op}","ts_ms":{seen // 1000}}}}}'
        )
        timestamp = seen // 1000 + 3
        yield table.record(key, timestamp, table.value_head + json.dumps(payload, ensure_ascii=False)[1:])
        if op == "d":
            yield table.record(key, timestamp, "null")

    def _row(self, key: int, unavailable: bool, further: str) -> str:
        rng = self.rng
        random = rng.random
        created = EPOCH + timedelta(microseconds=self.clock_us - int(random() * 9e13))
        quantity = "null" if random() < 0.05 else str(int(random() * 1000))
        ordered_on = "null" if random() < 0.05 else str(19_000 + int(random() * 1_200))
        score = "null" if random() < 0.05 else repr(round(0.01 + random() * 100, 3))
        note = "null" if random() < 0.05 else self.notes[int(random() * len(self.notes))]
        return (
            f'{{"id":{key},"name":{self.names[int(random() * len(self.names))]},"amount":"{self._amount()}",'
            f'"quantity":{quantity},"is_active":{"true" if random() < 0.7 else "false"},'
            f'"ordered_on":{ordered_on},'
            f'"changed_at":{self.clock_us - int(random() * 1e6)},"created_at":"{created.isoformat()}Z",'
            f'"score":{score},"note":{UNAVAILABLE if unavailable else note}{further}}}'
        )

    def _amount(self) -> str:
        """A numeric(12,2) as Base64 of its unscaled value: prices, refunds, and a few that fill the type."""
        cents = int(self.rng.random() * (1_000_000 if self.rng.random() < 0.98 else 999_999_999_999))
        if self.rng.random() < 0.1:
            cents = -cents
        length = (cents if cents >= 0 else ~cents).bit_length() // 8 + 1
        return b64encode(cents.to_bytes(length, "big", signed=True)).decode()

    def _texts(self, count: int, shortest: int, longest: int) -> list[str]:
        """Texts of so many words, as JSON strings."""
        texts = (self.rng.choices(WORDS, k=self.rng.randint(shortest, longest)) for _ in range(count))
        return [json.dumps(" ".join(words), ensure_ascii=False) for words in texts]


def write(folder: Path, database: Database, events: int, mix: Mix, files: int) -> None:
    """Write so many events, in their order and evenly to so many files, as a consumer of all topics would."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(files):
        share = events * (number + 1) // files - events * number // files
        with (folder / f"{number:04d}.jsonl").open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(database.lines(share, mix))


def main() -> None:
    """Read the arguments and write history, then the increments."""
    parser = argparse.ArgumentParser(description="Generate the events of the benchmarks.")
    parser.add_argument("out", type=Path)
    parser.add_argument("--history", type=int, default=400_000, help="number of change events of the history")
    parser.add_argument("--increment", type=int, default=10_000, help="number of change events of each increment")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()

    database = Database(arguments.seed)
    write(arguments.out / "history", database, arguments.history, HISTORY, HISTORY_FILES)
    for number in range(1, INCREMENTS + 1):
        write(arguments.out / f"increment-{number}", database, arguments.increment, INCREMENT, INCREMENT_FILES)
    database.tables[0].add_column()
    write(arguments.out / f"increment-{INCREMENTS + 1}", database, arguments.increment, INCREMENT, INCREMENT_FILES)


if __name__ == "__main__":
    main()
