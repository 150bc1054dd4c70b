{{ debezium_changes(
    events = source('bronze', 'risingwavex'),
    topics = ['dbserver1.inventory.customers'],
    connector = 'mysql',
    table = ['inventory', 'customers'],
    keys = ['id'],
    columns = {
        'id': 'int64',
        'first_name': 'string',
        'last_name': 'string',
        'email': 'string',
    },
) }}
