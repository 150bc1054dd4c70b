{{ debezium_changes(
    events = source('bronze', 'tencent'),
    topics = ['fleet_my.depot.vehicles'],
    connector = 'mysql',
    table = ['depot', 'vehicles'],
    keys = ['id'],
    columns = {
        'id': 'int32',
        'plate': 'string',
        'serviced_at': 'Timestamp',
        'mileage': 'double',
    },
) }}
