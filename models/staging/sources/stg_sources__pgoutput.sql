{{ debezium_changes(
    events = source('bronze', 'sources'),
    topics = ['src.pgoutput'],
    connector = 'yugabytedb_pgoutput',
    table = ['public', 'pgoutput'],
    keys = ['id'],
    columns = {
        'id': 'int64',
        'note': 'string',
        'more': 'string',
    },
) }}
