{{ debezium_changes(
    events = source('bronze', 'shop'),
    topics = ['shop.public.webhooks'],
    connector = 'postgresql',
    table = ['public', 'webhooks'],
    keys = ['hook_id'],
    columns = {
        'hook_id': 'int32',
        'payload': 'string',
        'source': 'string',
        'op': 'string',
    },
) }}
