{{ debezium_changes(
    events = source('bronze', 'shop'),
    topics = ['shop.public.order_lines'],
    connector = 'postgresql',
    table = ['public', 'order_lines'],
    keys = ['order_id', 'line_no'],
    columns = {
        'order_id': 'int64',
        'line_no': 'int16',
        'sku': 'string',
        'quantity': 'int32',
    },
) }}
