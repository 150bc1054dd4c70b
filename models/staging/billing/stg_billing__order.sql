{{ debezium_changes(
    events = source('bronze', 'billing'),
    topics = ['billing.billing.order'],
    connector = 'mariadb',
    table = ['billing', 'order'],
    keys = ['from'],
    columns = {
        'from': 'string',
        'to': 'string',
        'group': 'int32',
    },
) }}
