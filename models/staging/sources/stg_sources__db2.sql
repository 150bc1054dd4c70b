{{ debezium_changes(
    events = source('bronze', 'sources'),
    topics = ['src.db2'],
    connector = 'db2',
    table = ['DB2INST1', 'db2'],
    keys = ['id'],
    columns = {
        'id': 'int64',
        'note': 'string',
    },
) }}
