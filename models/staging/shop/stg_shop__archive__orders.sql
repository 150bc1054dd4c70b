{{ debezium_changes(
    events = source('bronze', 'shop'),
    topics = ['shop.archive.orders'],
    connector = 'postgresql',
    table = ['archive', 'orders'],
    keys = ['order_id'],
    columns = {
        'order_id': 'int64',
        'closed_on': 'Date',
        'remark': 'string',
    },
) }}
