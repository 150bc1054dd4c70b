{{ debezium_changes(
    events = source('bronze', 'billing'),
    topics = ['billing.archive.invoices'],
    connector = 'mariadb',
    table = ['archive', 'invoices'],
    keys = ['invoice_id'],
    columns = {
        'invoice_id': 'int64',
        'closed_at': 'MicroTimestamp',
        'remark': 'string',
    },
) }}
