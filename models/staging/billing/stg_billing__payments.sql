{{ debezium_changes(
    events = source('bronze', 'billing'),
    topics = ['billing.billing.payments'],
    connector = 'mariadb',
    table = ['billing', 'payments'],
    keys = ['payment_id'],
    columns = {
        'payment_id': 'uint64',
        'invoice_id': 'int64',
        'amount': 'Decimal(10,2)',
        'paid_at': 'ZonedTimestamp',
    },
) }}
