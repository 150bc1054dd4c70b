{{ debezium_changes(
    events = source('bronze', 'sources'),
    topics = ['src.opengauss'],
    connector = 'postgresql',
    table = ['public', 'opengauss'],
    keys = ['id'],
    columns = {
        'id': 'int64',
        'note': 'string',
    },
) }}
