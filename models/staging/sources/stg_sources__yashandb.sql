{{ debezium_changes(
    events = source('bronze', 'sources'),
    topics = ['src.yashandb'],
    connector = 'yashandb',
    table = ['APP', 'yashandb'],
    keys = ['id'],
    columns = {
        'id': 'int64',
        'note': 'string',
    },
) }}
