{{ debezium_changes(
    events = source('bronze', 'billing'),
    topics = ['billing.billing.dunning'],
    connector = 'mariadb',
    table = ['billing', 'dunning'],
    keys = ['account_no'],
    columns = {
        'account_no': 'string',
        'level': 'int16',
    },
) }}
