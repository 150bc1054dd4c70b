{{ debezium_changes(
    events = source('bronze', 'shop'),
    topics = ['shop.public.products'],
    connector = 'postgresql',
    table = ['public', 'products'],
    keys = ['sku'],
    columns = {
        'sku': 'string',
        'price': 'Decimal(8,2)',
        'description': 'string',
        'attributes': 'Json',
        'photo': 'bytes',
        'tags': 'array<string>',
    },
) }}
