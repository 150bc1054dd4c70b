{{ debezium_changes(
    events = source('bronze', 'billing'),
    topics = ['billing.billing.accounts'],
    connector = 'mariadb',
    table = ['billing', 'accounts'],
    keys = ['account_no'],
    columns = {
        'account_no': 'string',
        'holder': 'string',
        'city': 'string',
    },
) }}
