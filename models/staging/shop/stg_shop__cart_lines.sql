{{ debezium_changes(
    events = source('bronze', 'shop'),
    topics = ['shop.public.cart_lines'],
    connector = 'postgresql',
    table = ['public', 'cart_lines'],
    keys = ['cart_id', 'sku'],
    columns = {
        'cart_id': 'int32',
        'sku': 'string',
        'quantity': 'int32',
    },
) }}
