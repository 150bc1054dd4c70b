{{ debezium_changes(
    events = source('bronze', 'shop'),
    topics = ['shop.public.order'],
    connector = 'postgresql',
    table = ['public', 'order'],
    keys = ['from'],
    columns = {
        'from': 'string',
        'to': 'string',
        'group': 'int32',
    },
) }}
