{{ debezium_changes(
    events = source('bronze', 'shop'),
    topics = ['shop.public.Gift_Boxes'],
    connector = 'postgresql',
    table = ['public', 'Gift Boxes'],
    keys = ['Box Id'],
    columns = {
        'Box Id': 'int32',
        'select': 'string',
        'price.net': 'Decimal(8,2)',
        'back`tick': 'string',
        'Größe': 'string',
        '名前': 'string',
    },
) }}
