{{ debezium_changes(
    events = source('bronze', 'shop'),
    topics = ['shop.public.stock'],
    connector = 'postgresql',
    table = ['public', 'stock'],
    keys = ['depot', 'sku'],
    columns = {
        'depot': 'string',
        'sku': 'string',
        'amount': 'int32',
    },
) }}
