{{ debezium_changes(
    events = source('bronze', 'sources'),
    topics = ['src.spanner'],
    connector = 'spanner',
    table = ['database', 'spanner'],
    keys = ['id'],
    columns = {
        'id': 'int64',
        'note': 'string',
    },
) }}
