{{ debezium_changes(
    events = source('bronze', 'billing'),
    topics = ['billing.billing.webhooks'],
    connector = 'mariadb',
    table = ['billing', 'webhooks'],
    keys = ['hook_id'],
    columns = {
        'hook_id': 'int32',
        'payload': 'string',
        'source': 'string',
        'op': 'string',
    },
) }}
