"""The new offsets of topics in spans: each span is one commit."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from scripts import bronze
from scripts.bronze import Landed, Place
from scripts.kafka import Offsets, Topics
from scripts.ledger import KAFKA, Ledger, partition_name
from scripts.taken import Taken

SPAN_OFFSETS = 200_000  # in one commit
CHECKED_OFFSETS = 100  # by which a topic is known again


@dataclass(frozen=True)
class Offered:
    """Offsets of topics that will be one commit, and with which offset each partition goes on once it is done."""

    offsets: Offsets
    taken: dict[str, Taken]


def offered(spark: SparkSession, system: str, topics: Topics, ledger: Ledger, landed: Landed) -> Iterator[Offered]:
    """The new offsets of the topics in pieces of `SPAN_OFFSETS`, a partition after the other."""
    offsets = topics.offsets(spark)
    taken = _gone(topics, offsets, ledger, landed)
    todo = _New(topics, offsets, ledger, landed).offsets(spark, system)
    known = {name: entry for name, entry in ledger.files.items() if name.startswith(KAFKA)}
    # Where a partition begins is noted before anything is committed: should this run end, the next takes nothing before
    # for lost.
    starts = {partition_name(*place): start for place, (start, _) in todo.items()}
    begun = {name: Taken(start) for name, start in starts.items() if start and name not in known and name not in taken}
    if begun:
        yield Offered({}, begun)
        known |= begun
    span: Offsets = {}
    left = SPAN_OFFSETS
    for place, (start, end) in todo.items():
        name = partition_name(*place)
        if start == end:  # all of it is gone: reported once
            taken[name] = Taken(end)
        while start < end:
            upto = min(end, start + left)
            span[place] = (start, upto)
            before = known.get(name, Taken())
            # Its last record stays known until there is a later one; of what is read from its start it is another's.
            taken[name] = replace(before, bytes=upto) if before.bytes <= start else Taken(upto)
            left -= upto - start
            start = upto
            if not left:
                yield Offered(span, taken)
                known.update(taken)  # as the commit has left it
                span, taken, left = {}, {}, SPAN_OFFSETS
    if span or taken:
        yield Offered(span, taken)


def _gone(topics: Topics, offsets: Offsets, ledger: Ledger, landed: Landed) -> dict[str, Taken]:
    """Partitions that were read before and are there no more: what the ledger is to forget."""
    forgotten = {}
    for name, taken in ledger.files.items():
        topic, _, partition = name.removeprefix(KAFKA).rpartition("/")
        if name.startswith(KAFKA) and taken.bytes and topics.has(topic) and (topic, int(partition)) not in offsets:
            landed.notes.append(f"{topic}/{partition} is there no more; {taken.bytes:,} offsets of it had been read")
            forgotten[name] = Taken()
    return forgotten


class _New:
    """Which offsets are to be read: those after the last that was read, or all where the topic is not the one that was
    read.

    Reading again is harmless, as what bronze holds does not land again; taking another topic for the same would lose
    records.
    """

    def __init__(self, topics: Topics, offsets: Offsets, ledger: Ledger, landed: Landed) -> None:
        self._topics, self._there, self._landed = topics, offsets, landed
        self._read = {place: ledger.files.get(partition_name(*place), Taken()) for place in offsets}
        self._new: Offsets = {}
        self._marked: Offsets = {}  # the last record, which has to be the same
        self._checked: Offsets = {}  # the last offsets, of which bronze may hold no other records

    def offsets(self, spark: SparkSession, system: str) -> Offsets:
        topics_read = {topic for (topic, _), taken in self._read.items() if taken.bytes}
        for place in self._there:
            self._look(place, place[0] in topics_read)
        try:
            held = self._held(spark, system)
        except Exception as error:
            raise self._topics.explained(error) from error
        for place in {**self._checked, **self._marked}:
            known, others = held.get(place, (0, 0))
            if others or (not known and place in self._new):
                self._new[place] = self._there[place]
                why = "has no record left by which to know it again"
                if others:
                    why = "holds other records than have landed at their offsets: it was recreated or cut"
                self._landed.notes.append(f"{place[0]}/{place[1]} {why}. Read from its start")
        return self._new

    def _look(self, place: tuple[str, int], is_read: bool) -> None:
        """Choose what to read of a partition by its offsets alone; `is_read`: whether its topic was read before."""
        earliest, latest = self._there[place]
        taken, name = self._read[place], f"{place[0]}/{place[1]}"
        upto, last = taken.bytes, taken.lines
        if latest < upto:
            start = f", offset {earliest:,}: what it held before that is not known" if earliest else ""
            reset = f"{name} ends at offset {latest:,}, and {upto:,} had been read: it was recreated or cut"
            self._landed.notes.append(f"{reset}. Read from its start{start}")
        elif earliest > upto and (upto or is_read):
            gone = f"offsets {upto:,} to {earliest - 1:,} were deleted before they were read"
            self._landed.lost.append(f"{name}: {gone}")
        elif earliest > upto:
            begins = f"{name} begins at offset {earliest:,}"
            self._landed.notes.append(f"{begins}: older records were deleted before the first run")
        else:
            if latest > upto:
                self._new[place] = (upto, latest)
            if upto and taken.digest and earliest <= last < upto:
                self._marked[place] = (last, last + 1)
            elif upto:
                self._checked[place] = (max(earliest, upto - CHECKED_OFFSETS), upto)
            return
        self._new[place] = (earliest, latest)

    def _held(self, spark: SparkSession, system: str) -> dict[Place, tuple[int, int]]:
        """Of each partition that was read before: how many of the records that are looked at have landed, and at the
        offsets of how many others have. What bronze lacks tells nothing: it may have been erased or pruned there.
        """
        held: dict[Place, tuple[int, int]] = {}
        if self._marked:
            records = bronze.marked(self._topics.read(spark, self._marked))
            for row in records.select("topic", "partition", "digest").collect():
                place = row.topic, row.partition
                is_known = str(row.digest) == self._read[place].digest
                held[place] = (int(is_known), int(not is_known))
        for place in self._marked.keys() - held.keys():  # compacted, or the mark of a transaction of another topic
            upto = self._read[place].bytes
            self._checked[place] = (max(self._there[place][0], upto - CHECKED_OFFSETS), upto)
        self._checked = {place: (start, end) for place, (start, end) in self._checked.items() if start < end}
        if self._checked:
            records = self._topics.read(spark, self._checked)
            found = bronze.compared(spark, f"bronze.`{system}`", records, self._checked)
            held |= {place: (row.known, row.others) for place, row in found.items()}
        return held
