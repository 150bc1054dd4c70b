{{ debezium_changes(
    events = source('bronze', 'billing'),
    topics = ['billing.billing.invoice_lines'],
    connector = 'mariadb',
    table = ['billing', 'invoice_lines'],
    keys = ['invoice_id', 'line_no'],
    columns = {
        'invoice_id': 'int64',
        'line_no': 'int16',
        'label': 'string',
        'kwh': 'Decimal(12,3)',
    },
) }}
