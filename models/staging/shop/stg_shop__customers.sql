{{ debezium_changes(
    events = source('bronze', 'shop'),
    topics = ['shop.public.customers'],
    connector = 'postgresql',
    table = ['public', 'customers'],
    keys = ['customer_id'],
    columns = {
        'customer_id': 'int32',
        'name': 'string',
        'email': 'string',
        'vip': 'boolean',
        'country': 'string',
        'phone': 'string',
    },
) }}
