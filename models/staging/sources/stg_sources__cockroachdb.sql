{{ debezium_changes(
    events = source('bronze', 'sources'),
    topics = ['src.cockroachdb'],
    connector = 'cockroachdb',
    table = ['d', 'public', 'cockroachdb'],
    keys = ['id'],
    columns = {
        'id': 'int64',
        'note': 'string',
    },
) }}
