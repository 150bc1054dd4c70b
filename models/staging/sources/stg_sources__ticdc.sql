{{ debezium_changes(
    events = source('bronze', 'sources'),
    topics = ['src.ticdc'],
    connector = 'ticdc',
    table = ['test', 'ticdc'],
    keys = ['id'],
    columns = {
        'id': 'int64',
        'note': 'string',
    },
) }}
