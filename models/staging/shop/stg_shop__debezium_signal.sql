{{ debezium_changes(
    events = source('bronze', 'shop'),
    topics = ['shop.public.debezium_signal'],
    connector = 'postgresql',
    table = ['public', 'debezium_signal'],
    keys = ['id'],
    columns = {
        'id': 'string',
        'type': 'string',
        'data': 'string',
    },
) }}
