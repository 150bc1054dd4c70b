{{ debezium_changes(
    events = source('bronze', 'shop'),
    topics = ['shop.public.orders'],
    connector = 'postgresql',
    table = ['public', 'orders'],
    keys = ['order_id'],
    columns = {
        'order_id': 'int64',
        'customer_id': 'int32',
        'status': 'string',
        'total': 'Decimal(12,2)',
        'ordered_at': 'ZonedTimestamp',
    },
) }}
