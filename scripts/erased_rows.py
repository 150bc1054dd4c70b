"""Which rows and records `make erase` is about: conditions in SQL, from TABLE and KEY."""

import re
import shlex
from pathlib import Path

from pyspark.sql import SparkSession

from scripts.declared import Declared, declared_tables
from scripts.errors import LakehouseError, UsageError
from scripts.keys import key_named
from scripts.literals import sql_text

Keys = list[dict[str, str]]  # of each row the columns of its key, as the lakehouse names them, with their values


def find_table(system: str, name: str, models: Path) -> Declared:
    """The table that TABLE names, with or without what stands before it in the source.

    Raises:
        UsageError: none has that name, several have it, or it has no key.
    """
    tables = declared_tables(system, models).values()
    found = [one for one in tables if key_named(one.table, {name: [name]})[0]]
    if len(found) != 1:
        known = ", ".join(sorted(one.table.name for one in tables)) or "none"
        problem = "several tables have that name" if found else "no table with models has that name"
        raise UsageError(f"TABLE={name}: {problem}. Tables of {system}: {known}.")
    if not found[0].table.keys:
        raise UsageError(f"TABLE={name}: the table has no key, so its rows cannot be told apart.")
    return found[0]


def parse_keys(text: str, declared: Declared) -> Keys:
    """`id=7`, `a=1,b=x`, several of them with blanks between; a part with blanks is quoted.

    Raises:
        UsageError: a part does not name each column of the key once.
    """
    columns = declared.table.kept(declared.table.keys)
    parts = shlex.shlex(text, posix=True)
    parts.whitespace_split, parts.escape, parts.commenters = True, "", ""
    names = "|".join(map(re.escape, columns))
    keys: Keys = []
    try:
        for part in parts:
            pairs = re.split(f",(?=(?:{names})=)", part) if len(columns) > 1 else [part]
            key = dict(pair.partition("=")[::2] for pair in pairs if "=" in pair)
            if sorted(key) != sorted(columns) or len(pairs) != len(columns):
                expected = ",".join(f"{name}=<value>" for name in columns)
                raise UsageError(f"KEY={text!r}: {part!r} is not of the form {expected}.")
            keys.append(key)
    except ValueError:
        raise UsageError(f"KEY={text!r}: a quote is not closed.") from None
    return keys


def _column(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


class Rows:
    """The rows of one table that have some keys."""

    def __init__(self, spark: SparkSession, system: str, declared: Declared, keys: Keys) -> None:
        self.log = f"staging.`{declared.model('staging', system)}`"
        if not spark.catalog.tableExists(self.log):
            raise LakehouseError(f"{system}: {self.log} is not there. First: make run SYSTEM={system}")
        self._spark, self._declared, self._keys = spark, declared, keys
        self._types = dict(spark.table(self.log).dtypes)
        rows = " or ".join(f"({' and '.join(self._equal(*pair) for pair in key.items())})" for key in keys)
        self.of_state = f"({rows})"  # in silver and in a history
        self._check_values()
        self._texts = self._key_texts()
        rejected = f"_cdc_kind in ('tombstone', 'rejected') and {self._has_key_text('_cdc_key')}"
        self.of_log = f"coalesce(_cdc_kind in ('change', 'rejected') and {self.of_state} or {rejected}, false)"

    def of_records(self, batches: list[int], coordinates: str, events: str) -> str:
        """The condition of the records behind them in bronze and in `events`, the events model if there is one."""
        place = "_cdc_batch, _cdc_place_hash, _cdc_place_number, coalesce(_cdc_key, '')"
        known = f"select {place} from {self.log} where {self.of_log}"
        if events:
            known += f" union select {coordinates} from {events} where {self.of_no_table}"
        return f"batch in ({', '.join(map(str, batches))}) and ({coordinates}) in ({known})"

    @property
    def of_no_table(self) -> str:
        """The condition of records in an events model that name no table, and have the message key of one of the rows:
        tombstones, and records that cannot be used. They stand in no change log."""
        topics = ", ".join(map(sql_text, sorted(self._declared.table.topics)))
        return f"coalesce(source_table is null and topic in ({topics}) and {self._has_key_text('key')}, false)"

    def check_other_keys(self) -> None:
        """Refuse if an event gave one of the rows another key that is not named.

        Raises:
            UsageError: with the other keys.
        """
        names = ", ".join(map(_column, self._keys[0]))
        place = "_cdc_batch, _cdc_place_hash, _cdc_place_number"
        of_key = f"_cdc_kind in ('change', 'rejected') and {self.of_state}"
        others = self._spark.sql(f"""
            select distinct {names} from {self.log}
            where _cdc_kind = 'change' and not {self.of_state}
                and ({place}) in (select {place} from {self.log} where {of_key})
            """).collect()
        if others:
            told = " and ".join(",".join(f"{name}={row[name]}" for name in self._keys[0]) for row in others)
            raise UsageError(f"KEY: an event changed the key of the row, which is also {told}. Name all of its keys.")

    def _equal(self, name: str, value: str) -> str:
        return f"{_column(name)} = try_cast({sql_text(value)} as {self._types[name]})"

    def _check_values(self) -> None:
        for key in self._keys:
            for name, value in key.items():
                cast = f"select try_cast({sql_text(value)} as {self._types[name]}) is null"
                if self._spark.sql(cast).collect()[0][0]:
                    raise UsageError(f"KEY: {name}={value}: the value is not of type {self._types[name]}.")

    def _key_texts(self) -> list[str]:
        """The keys of messages about these rows, if messages have the key of the table."""
        table = self._declared.table
        if set(table.keys) not in map(set, table.message_keys):
            return []
        is_record = "_cdc_kind = 'change' and not endswith(coalesce(_cdc_event_id, ''), '#before')"
        query = f"select distinct _cdc_key as text from {self.log} where {is_record} and {self.of_state}"
        return [row.text for row in self._spark.sql(query).collect() if row.text is not None]

    def _has_key_text(self, column: str) -> str:
        """The condition that the key of a message is that of one of the rows."""
        whole = f"from_json({column}, 'map<string,string>')"
        members = f"coalesce(from_json({whole}['payload'], 'map<string,string>'), {whole})"
        told = []
        for key in self._keys:
            in_events = zip(self._declared.table.in_events(key), key.values(), strict=True)
            told.append(" and ".join(f"{members}[{sql_text(name)}] = {sql_text(value)}" for name, value in in_events))
        known = f" or {column} in ({', '.join(map(sql_text, self._texts))})" if self._texts else ""
        return f"({' or '.join(f'({one})' for one in told)}{known})"
