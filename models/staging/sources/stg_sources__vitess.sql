{{ debezium_changes(
    events = source('bronze', 'sources'),
    topics = ['src.vitess'],
    connector = 'vitess',
    table = ['commerce', 'vitess'],
    keys = ['id'],
    columns = {
        'id': 'int64',
        'note': 'string',
    },
) }}
