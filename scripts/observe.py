"""What the scaffold asks of the records that a system has landed: the one place where it reads them with Spark."""

import hashlib
import json
from collections.abc import Sequence, Set
from contextlib import suppress
from functools import reduce
from itertools import chain
from operator import or_
from typing import Any, NamedTuple

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from scripts.catalog import relations_in
from scripts.declared import Declared
from scripts.values import parsed

# Of the values without a schema block, for their types: rows of a topic, and bytes of all topics together.
SAMPLE_ROWS = 5000
SAMPLE_BYTES = 64 << 20
DDL = '"tableChanges"'
DDL_SAMPLE = 10_000  # of the newest DDL records
PLACE = ("topic", "partition", "batch", "file", "place")  # which names a record; `place` is its line or offset
# What stands behind the last `"payload":`; all of a value that has none.
TAIL = "substring_index(value, '\"payload\":', -1)"
# What stands before the payload, as bytes. An envelope that begins as Debezium's do is short and found from behind: to
# look for the end of the schema block would be most of what a sample costs. A column named `payload` does not begin so.
HEAD = """if(
    startswith(tail, '{"before":'),
    substring(cast(value as binary), 1, octet_length(value) - octet_length(tail) - 10),
    cast(substring_index(value, '"payload":', 1) as binary)
)"""
# A value that begins with a schema block. An empty block (Lindorm) tells nothing: such values are read one by one.
HAS_SCHEMA = r"""(
    octet_length(tail) < octet_length(value)
    and (startswith(value, '{"schema":{"') or value rlike '^\\s*[{]\\s*"schema"\\s*:\\s*[{]\\s*"')
)"""
# A tombstone of a converter that writes schema blocks, where the row before it had one.
NO_VALUE = r'(?s)^\s*[{]\s*"schema"\s*:.*"payload"\s*:\s*null\s*[}]\s*$'
# What a row is in; without it, a value that has nothing of an envelope is a flattened row.
IMAGES, OF_ENVELOPES = ("after", "before", "data"), ("op", "source", "ts_ms", "status")
# Where a row comes from: a router gives the rows of many tables one topic, and may give them one schema block. What
# follows the object is not read.
SOURCE = """from_json(
    substring_index(value, '"source":', -1),
    'name string, db string, schema string, table string, collection string, keyspace string, namespace string,
    database_name string, schema_name string, table_name string, primary_keys string'
)"""
# The same for a flattened row, which may have a column named `source`.
SOURCE_OF_ROW = r"""if(
    contains(tail, '"source":{') or contains(tail, '"source": {'), null,
    regexp_extract_all(tail, '"__(?:source_)?(?:db|schema|keyspace|table|collection|name)"\\s*:\\s*"[^"]*"', 0)
)"""
# The schema block of a value that does not begin with it (TiCDC).
SCHEMA_BEHIND = "if(members in ('[payload, schema]', '[schema, payload]'), get_json_object(value, '$.schema'), null)"
# The key of a row that stands in its value (Huawei CDL).
KEY_INSIDE = """if(not has_schema and contains(value, '"unique":'), cast(json_object_keys(
    coalesce(get_json_object(value, '$.unique'), get_json_object(value, '$.payload.unique'))) as string), null)"""
# The fields that an update without a document sets (MongoDB), without what stands behind a point.
FIELDS_SET = """if(
    not has_schema and contains(value, '"updatedFields":')
    and coalesce(get_json_object(value, '$.after'), get_json_object(value, '$.payload.after')) is null,
    array_distinct(transform(json_object_keys(coalesce(
        get_json_object(value, '$.updateDescription.updatedFields'),
        get_json_object(value, '$.payload.updateDescription.updatedFields')
    )), field -> substring_index(field, '.', 1))), null)"""
# The key of a message: the schema block that it begins with, else the names of its columns.
KEY = """if(startswith(key, '{"schema":{'), substring_index(key, '"payload":', 1), concat(
    coalesce(cast(json_object_keys(key) as string), ''),
    coalesce(cast(json_object_keys(get_json_object(key, '$.payload')) as string), '')))"""
# Records that carry no row and tell nothing of their table: truncates, which have no key, and heartbeats of Huawei CDL.
# The events of a table without a primary key have no `unique` either.
WITHOUT_ROW = """(
    key is null and (contains(value, '"op":"t"') or contains(value, '"op": "t"'))
    or contains(tail, '"unique":') and tail rlike '"unique": ?null'
    and tail rlike '"(after|data)": ?null' and tail rlike '"before": ?null'
)"""


class Event(NamedTuple):
    """A record, as far as it shows its table, columns and key."""

    topic: str | None
    value: str
    key: str | None
    offset: int | None = None  # none of a bare value, whose key is not known


class Arrived(NamedTuple):
    """The new records of a topic: how many there are, and the place of the first; how many are rejected, and why."""

    topic: str | None
    records: int
    first: str | None
    rejected: int = 0
    reasons: str = ""


class Bronze:
    """The landed records of a system."""

    def __init__(self, spark: SparkSession, system: str) -> None:
        self.system = system
        self._spark = spark
        self._name = f"bronze.`{system}`"
        self._silver: set[str] | None = None  # what there is
        self._newest: int | None = None

    def newest_batch(self) -> int:
        """The number of the newest batch; 0 where there is none. What lands from now on is left to the next run."""
        self._newest = self._spark.sql(f"select max(batch) as batch from {self._name}").collect()[0].batch or 0
        return self._newest

    def _has_nothing(self, above_batch: int) -> bool:
        return self._newest is not None and self._newest <= above_batch

    def topics(self) -> set[str]:
        """All topics that have records."""
        rows = self._spark.sql(f"select distinct topic from {self._name} where topic is not null").collect()
        return {row.topic for row in rows}

    def sample(self, above_batch: int, further: Set[str]) -> list[Event]:
        """Records above a batch, and of all batches of the `further` topics, that show what tables there are.

        One event of each shape is looked at, whatever its place; for the types of values without a schema block some
        more.
        """
        if not further and self._has_nothing(above_batch):
            return []
        rows = self._spark.table(self._name).where("value is not null")
        is_new = F.col("batch") > above_batch
        rows = rows.where(is_new | F.col("topic").isin(*further) if further else is_new)
        return sample_of(rows)

    def newest_ddl(self, up_to_batch: int, topics: Set[str], names: Sequence[str] = ()) -> list[tuple[str, str]]:
        """Topic and value of the newest DDL records of some topics up to a batch, the newest last.

        Args:
            names: texts of which a value has to hold one; none: all values count.
        """
        rows = self._spark.table(self._name).where((F.col("batch") <= up_to_batch) & F.col("topic").isin(*topics))
        if names:
            rows = rows.where(reduce(or_, [F.col("value").contains(name) for name in names]))
        return [(row.topic, row.value) for row in _newest_ddl(rows)]

    def has_tombstones(self, topics: Set[str]) -> bool:
        """Whether topics have a record with a key and without a value, which may be a schema block and nothing else."""
        rows = self._spark.table(self._name).where(F.col("value").isNull() | F.col("value").rlike(NO_VALUE))
        return not rows.where(rows.key.isNotNull() & rows.topic.isin(sorted(topics))).isEmpty()

    def has_rows_without_schema(self, topics: Set[str]) -> bool:
        """Whether topics have a value with a row, flattened or in an envelope, and without a schema block."""
        rows = self._spark.table(self._name).where(F.col("topic").isin(*topics) & ~F.col("value").rlike(NO_VALUE))
        is_flat = f"get_json_object(value, '$') like '{{%' and {_first_of(OF_ENVELOPES)} is null"
        has_row = f"({_first_of(IMAGES)} is not null or {is_flat})"
        return not rows.where(f"get_json_object(value, '$.schema.fields') is null and {has_row}").isEmpty()

    def has_keys(self, declared: Declared) -> bool:
        """Whether the change log of a table has a change whose message had a key."""
        with suppress(AnalysisException):
            log = self._spark.table(f"staging.`{declared.model('staging', self.system)}`")
            return not log.where("_cdc_kind = 'change' and _cdc_key is not null").isEmpty()
        return False

    def arrived(self, above_batch: int) -> list[Arrived]:
        """What each topic has above a batch, ordered by topic."""
        if self._has_nothing(above_batch):
            return []
        place = "if(file is null, concat('offset ', offset), concat(file, ':', line))"
        first = f"min_by({place}, struct(batch, coalesce(line, offset))) filter (where error is null) as first"
        rows = self._spark.sql(
            f"select topic, count_if(error is null) as records, {first}, count(error) as rejected,"
            f" array_join(array_sort(collect_set(error)), ', ') as reasons from {self._name} where batch >"
            f" {above_batch} group by topic order by topic"
        ).collect()
        return [Arrived(*row) for row in rows]

    def stored_keys(self, silver: str) -> str | None:
        """The digest of the key by which a silver table was built; None: there is none. A view has no key."""
        if self._silver is None:
            self._silver = {name.lower() for name in relations_in(self._spark, "silver")}
        if silver.lower() not in self._silver:  # for one that is not there Spark takes ten times as long to say so
            return None
        with suppress(AnalysisException):
            rows = self._spark.sql(f"show tblproperties silver.`{silver}`").collect()
            return next((str(row.value) for row in rows if row.key == "cdc.keys"), digest_of_keys([]))
        return None

    def rename_stored(self, silver: str, column: str, name: str) -> None:
        """Rename a column of a silver table, if there is such a table and column."""
        with suppress(AnalysisException):
            self._spark.sql(f"alter table silver.`{silver}` rename column `{column}` to `{name}`")


def digest_of_keys(keys: list[str]) -> str:
    """What a silver table has as `cdc.keys`."""
    return hashlib.md5(json.dumps(keys).encode()).hexdigest()


def sample_of(rows: DataFrame) -> list[Event]:
    """Records of bronze, of which no value is NULL, that show what tables there are."""
    rows = rows.withColumns({"tail": F.expr(TAIL), "place": F.coalesce("line", "offset")})
    shapes = _shapes(rows, HAS_SCHEMA)
    found = [shapes]
    # A schema block of MongoDB does not tell the fields: these values are read one by one too.
    is_mongodb = "io.debezium.connector.mongo"
    one_by_one = sorted({row.topic for row in shapes if row.topic and is_mongodb in row.value})
    if one_by_one:
        found.append(_shapes(rows.where(F.col("topic").isin(one_by_one)), "false"))
    if with_ddl := {row.topic for row in shapes if row.topic and DDL in row.value}:
        found.append(_newest_ddl(rows.where(F.col("topic").isin(with_ddl))))  # their shape does not tell what they say
    return [Event(row.topic, row.value, row.key, row.offset) for rows in found for row in rows]


def _shapes(rows: DataFrame, has_schema: str) -> list[Any]:
    """The first record with a row of each topic, source and shape (of a schema block, else of names), and some more of
    the values without a schema block, in the order of landing.

    First the places of these records, as numbers, so that Spark does not sort whole values; then what stands there.
    """
    # Elsewhere `data` may be a column. Behind the schema block of Debezium's envelope is all that there is of it.
    text = "if(startswith(tail, '{\"before\":'), tail, value)"
    is_cdl = f"contains({text}, '\"DATA_STORE\"') and contains({text}, '\"OPERATION\"')"
    data, owner, table = (
        f"if({is_cdl}, coalesce(get_json_object(value, '$.{name}'), get_json_object(value, '$.payload.{name}')), null)"
        for name in ("data", "SEG_OWNER", "TABLE_NAME")
    )
    images = ", ".join(f"get_json_object(value, '{path}')" for path in ("$.after", "$.payload.after", "$.payload"))
    image = f"coalesce({data}, {images}, value)"
    names = f"cast(cast(json_object_keys({image}) as string) as binary)"
    names = f"if(has_schema, {HEAD}, {names})"
    of_row = (names, "members", SCHEMA_BEHIND, "field_set", KEY, KEY_INSIDE)
    shape = f"xxhash64({', '.join(of_row)}, to_json({SOURCE}), {SOURCE_OF_ROW}, {owner}, {table})"
    rows = rows.withColumn("has_schema", F.expr(has_schema))
    rows = rows.withColumn("members", F.expr("if(has_schema, null, cast(json_object_keys(value) as string))"))
    streams = rows.withColumn("field_set", F.explode_outer(F.expr(FIELDS_SET)))  # may have as many sets as records
    first_row = f"min(if(has_schema and {WITHOUT_ROW}, null, place)) as place"
    streams = streams.groupBy(*PLACE[:-1], "has_schema", F.expr(shape).alias("shape")).agg(
        F.expr(first_row), F.expr("count(*) as records"), F.expr("sum(octet_length(value)) as bytes")
    )
    streams = streams.withColumn("at", F.xxhash64(*PLACE)).where("place is not null").collect()
    first: dict[Any, Any] = {}
    for row in sorted(streams, key=_order_of_landing):
        first.setdefault((row.topic, row.has_schema, row.shape), row)

    if not first:
        return []
    # Constants, not a table to join with: in a new process its broadcast took most of a second. There may be as many
    # shapes as records (documents with names of their own): a set of numbers is not looked through, as an array is.
    batches = {row.batch for row in streams if not row.has_schema} | {row.batch for row in first.values()}
    is_first = F.expr(f"at in ({', '.join(str(row['at']) for row in first.values())})")
    there = rows.where(F.col("batch").isin(batches)).withColumn("at", F.xxhash64(*PLACE))
    there = there.where(is_first | _is_in_sample([row for row in streams if not row.has_schema]))
    found = there.select(*PLACE, "value", "key", "offset", "has_schema").collect()
    return in_order(sorted(found, key=_order_of_landing))


def _first_of(names: Sequence[str]) -> str:
    """The first member of these names that a value has, or its payload."""
    paths = [f"$.{at}{name}" for name in names for at in ("", "payload.")]
    members = ", ".join(f"get_json_object(value, '{path}')" for path in paths)
    return f"coalesce({members})"


def _is_in_sample(streams: Sequence[Any]) -> Column:
    """Whether a row without a schema block is one of those that show types: every n-th, anywhere in its topic."""
    records: dict[str, int] = {}
    sizes: dict[str, int] = {}
    for row in streams:
        topic = row.topic or ""
        records[topic] = records.get(topic, 0) + row.records
        sizes[topic] = sizes.get(topic, 0) + row.bytes
    if not records or not SAMPLE_ROWS:
        return F.lit(False)
    every, left = dict[str, int](), SAMPLE_BYTES
    for number, topic in enumerate(
        sorted(sizes, key=lambda topic: sizes[topic])
    ):  # what small ones leave is for others
        share = left // (len(sizes) - number)
        every[topic] = max(-(-records[topic] // SAMPLE_ROWS), -(-sizes[topic] // share))
        left -= sizes[topic] // every[topic]
    of_topic = F.create_map(*map(F.lit, chain.from_iterable(every.items())))
    return ~F.col("has_schema") & (F.col("at") % of_topic[F.coalesce("topic", F.lit(""))] == 0)


def _newest_ddl(rows: DataFrame) -> list[Any]:
    """The newest DDL records, the newest last."""
    place = (F.col("batch"), F.coalesce("file", F.lit("")), F.coalesce("line", "offset"))
    rows = rows.where(F.col("value").contains(DDL)).orderBy(*map(F.desc_nulls_last, place))
    newest = rows.select("batch", "topic", "partition", "offset", "value", "key").limit(DDL_SAMPLE).collect()
    return ddl_in_order(newest[::-1])


def ddl_in_order(rows: Sequence[Any]) -> list[Any]:
    """DDL records in the order of landing, but those of a partition by their offsets, unless the clock of the source
    runs otherwise: what landed later may be older, and the offsets of a topic that was recreated begin again.
    """
    rows = in_order(rows)
    groups = [(row.topic, row.partition) for row in rows]
    clocks: dict[Any, list[Any]] = {}
    for row in sorted(rows, key=lambda row: row.offset or 0):
        clocks.setdefault((row.topic, row.partition), []).append(_clock(row.value))
    in_step = {group for group, found in clocks.items() if None not in found and found == sorted(found)}
    places = [(row.offset if group in in_step else None,) for row, group in zip(rows, groups, strict=True)]
    return _sorted_within(rows, groups, places)


def _clock(value: str) -> int | None:
    event = parsed(value)
    event = event.get("payload") or event if isinstance(event, dict) else {}
    source = event.get("source") if isinstance(event, dict) else None
    clock = source.get("ts_ms") if isinstance(source, dict) else None
    return clock if isinstance(clock, int) else None


def in_order(rows: Sequence[Any]) -> list[Any]:
    """Rows of bronze in the order of landing, but those of a partition in one batch by their offsets, if all have one.

    Lines of a file may stand in any order.
    """
    groups = [(row.batch, row.topic, row.partition) for row in rows]
    return _sorted_within(rows, groups, [(row.offset,) for row in rows])


def _sorted_within(rows: Sequence[Any], groups: list[Any], places: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Rows of which those of each group are sorted among themselves by `places`, if all have one."""
    members: dict[Any, list[int]] = {}
    for number, group in enumerate(groups):
        members.setdefault(group, []).append(number)
    for numbers in members.values():
        if all(None not in places[number] for number in numbers):
            numbers.sort(key=lambda number: places[number])
    queues = {group: iter(numbers) for group, numbers in members.items()}
    return [rows[next(queues[group])] for group in groups]


def _order_of_landing(row: Any) -> Any:
    return row.batch, row.file or "", row.place, row.partition or 0, row.topic or ""
