{{ debezium_changes(
    events = source('bronze', 'sources'),
    topics = ['src.cassandra'],
    connector = 'cassandra',
    table = ['ks', 'cassandra'],
    keys = ['id'],
    columns = {
        'id': 'int64',
        'note': 'string',
        'more': 'string',
    },
) }}
