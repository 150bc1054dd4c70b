{{ debezium_changes(
    events = source('bronze', 'sources'),
    topics = ['src.informix'],
    connector = 'informix',
    table = ['d', 'informix', 'informix'],
    keys = ['id'],
    columns = {
        'id': 'int64',
        'note': 'string',
    },
) }}
