{{ debezium_changes(
    events = source('bronze', 'sources'),
    topics = ['src.yboutput'],
    connector = 'yugabytedb_yboutput',
    table = ['public', 'yboutput'],
    keys = ['id'],
    columns = {
        'id': 'int64',
        'note': 'string',
        'more': 'string',
    },
) }}
