{{ debezium_changes(
    events = source('bronze', 'sources'),
    topics = ['src.ibmi'],
    connector = 'ibmi',
    table = ['src.ibmi'],
    keys = ['id'],
    columns = {
        'id': 'int64',
        'note': 'string',
    },
) }}
