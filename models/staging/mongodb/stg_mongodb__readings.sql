{{ debezium_changes(
    events = source('bronze', 'mongodb'),
    topics = ['field.greenhouse.readings'],
    connector = 'mongodb',
    table = ['greenhouse', 'readings'],
    keys = ['_id'],
    columns = {
        '_id': 'Bson(long)',
        'sensor': 'Bson(string)',
        'value': 'Bson(double)',
        'at': 'Bson(date)',
        'raw': 'Bson(long)',
        'flags': 'Bson(any)',
        'document': 'Bson(document)',
    },
) }}
