{{ debezium_changes(
    events = source('bronze', 'billing'),
    topics = ['billing.billing.tariffs'],
    connector = 'mariadb',
    table = ['billing', 'tariffs'],
    keys = ['code'],
    columns = {
        'code': 'string',
        'cents_per_kwh': 'Decimal(6,3)',
        'note': 'string',
        'legacy_code': 'int64',
    },
) }}
