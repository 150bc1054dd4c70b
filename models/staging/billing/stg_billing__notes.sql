{{ debezium_changes(
    events = source('bronze', 'billing'),
    topics = ['billing.billing.notes'],
    connector = 'mariadb',
    table = ['billing', 'notes'],
    keys = [],
    columns = {
        'account_no': 'string',
        'note': 'string',
        'written_at': 'Timestamp',
    },
) }}
