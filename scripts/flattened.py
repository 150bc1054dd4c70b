"""Rows that `ExtractNewRecordState` flattened: what of them is metadata, and under which prefix."""

from typing import Any

Payload = dict[str, Any]
ROW_OPERATIONS = {"c", "r", "u", "d"}
NOTIFICATION = {"id", "aggregate_type", "type", "additional_data"}
# Members of an event that `ExtractNewRecordState` adds on request (`add.fields`), without its prefix.
FLATTENED_METADATA = set(
    """
    op ts_ms ts_us ts_ns version connector name db schema table collection keyspace shard snapshot sequence lsn xmin
    txId txSeq scn commit_scn change_lsn commit_lsn event_serial_no file pos row server_id gtid thread query
    """.split()
)
# Those that could be columns of a table as well: they are metadata where `__` or `source_` stands before them.
SOURCE_METADATA = set(
    """
    rs_id ssn redo_thread user_name row_id redo_sql lcr_position start_scn start_ts_ms commit_ts_ms ord h wallTime lsid
    txnNumber tord stxnid initsync rs vgtid begin_lsn ts_sec commit_time cluster cluster_id commit_ts resolved_ts ts_hlc
    origin origin_lsn receiver receiver_library server_transaction_id mod_number value_capture_type project_id
    instance_id database_id change_stream_name low_watermark read_at_timestamp number_records_in_transaction
    transaction_tag system_transaction partition_token is_last_record_in_transaction_in_partition
    number_of_partitions_in_transaction record_time tablet_id table_id partition_id origin_id position_scn group_lsn
    group_offset batch_row_id
    """.split()
)
FLATTENED_TRANSACTION = set(
    """
    transaction_id transaction_total_order transaction_data_collection_order transaction_transaction_epoch
    transaction_transaction_rank
    """.split()
)


def is_plain_row(payload: Payload) -> bool:
    """Whether a value is no envelope, marker of a transaction, notification or heartbeat, but any other JSON object."""
    is_envelope = isinstance(payload.get("source"), dict) and any(
        name in payload for name in ("op", "ddl", "tableChanges", "historyRecord")
    )
    is_marker = payload.get("status") in ("BEGIN", "END") and "event_count" in payload
    is_notification = payload.keys() - {"timestamp"} == NOTIFICATION
    return not (is_envelope or is_marker or is_notification or payload.keys() <= {"ts_ms", "ts_us", "ts_ns", "vgtid"})


def is_marked_row(payload: Payload) -> bool:
    """A flattened row is recognised by what the transform adds; without it, it could be any JSON."""
    return is_plain_row(payload) and ("__deleted" in payload or str(payload.get("__op")).lower() in ROW_OPERATIONS)


def with_prefix(payload: Payload) -> str:
    """`flattened`, or `flattened(<prefix>)` where the metadata of a row have another prefix than Debezium's own."""
    for name, value in payload.items():
        prefix = name.removesuffix("op")
        if (
            prefix in ("", "__", name)
            or prefix[-1].isalnum()
            or not (isinstance(value, str) and value in ROW_OPERATIONS)
        ):
            continue
        metadata = [other for other in payload if is_metadata(other, f"flattened({prefix})")]
        if "__deleted" in metadata and len(metadata) > 2:
            return f"flattened({prefix})"
    return "flattened"


def is_metadata(name: str, connector: str) -> bool:
    prefix = connector[len("flattened(") : -1] or "__"
    rest = name.removeprefix(prefix)
    of_source = rest.removeprefix("source_")
    may_be_column = of_source == rest and prefix != "__"
    is_of_source = of_source in FLATTENED_METADATA or not may_be_column and of_source in SOURCE_METADATA
    return name == "__deleted" or rest != name and (is_of_source or rest in FLATTENED_TRANSACTION)
