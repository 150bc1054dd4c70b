{{ debezium_changes(
    events = source('bronze', 'flinkx'),
    topics = ['fullfillment.inventory.products'],
    connector = 'postgresql',
    table = ['inventory', 'products'],
    keys = ['id'],
    columns = {
        'id': 'int64',
        'name': 'string',
        'description': 'string',
        'weight': 'double',
    },
) }}
