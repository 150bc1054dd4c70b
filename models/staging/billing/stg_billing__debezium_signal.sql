{{ debezium_changes(
    events = source('bronze', 'billing'),
    topics = ['billing.billing.debezium_signal'],
    connector = 'mariadb',
    table = ['billing', 'debezium_signal'],
    keys = ['id'],
    columns = {
        'id': 'string',
        'type': 'string',
        'data': 'string',
    },
) }}
