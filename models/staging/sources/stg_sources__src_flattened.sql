{{ debezium_changes(
    events = source('bronze', 'sources'),
    topics = ['src.flattened'],
    connector = 'flattened',
    table = ['src.flattened'],
    keys = ['id'],
    columns = {
        'id': 'int64',
        'note': 'string',
    },
) }}
