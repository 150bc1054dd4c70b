{{ debezium_changes(
    events = source('bronze', 'sources'),
    topics = ['src.yugabytedb'],
    connector = 'yugabytedb',
    table = ['public', 'yugabytedb'],
    keys = ['id'],
    columns = {
        'id': 'int64',
        'note': 'string',
        'more': 'string',
    },
) }}
