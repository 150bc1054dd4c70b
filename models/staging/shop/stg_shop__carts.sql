{{ debezium_changes(
    events = source('bronze', 'shop'),
    topics = ['shop.public.carts'],
    connector = 'postgresql',
    table = ['public', 'carts'],
    keys = ['cart_id'],
    columns = {
        'cart_id': 'int32',
        'customer_id': 'int32',
    },
) }}
