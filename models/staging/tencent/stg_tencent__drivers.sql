{{ debezium_changes(
    events = source('bronze', 'tencent'),
    topics = ['fleet_my.depot.drivers'],
    connector = 'mysql',
    table = ['depot', 'drivers'],
    keys = ['badge'],
    columns = {
        'badge': 'string',
        'name': 'string',
    },
) }}
