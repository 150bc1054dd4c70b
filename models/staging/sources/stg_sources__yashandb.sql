{{ debezium_changes(
    events = source('bronze', 'sources'),
    topics = ['src.yashandb'],
    connector = 'yashandb',
    table = ['s', 'yashandb'],
    keys = ['id'],
    columns = {
        'id': 'int64',
        'note': 'string',
    },
) }}
