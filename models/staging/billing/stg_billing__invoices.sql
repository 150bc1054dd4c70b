{{ debezium_changes(
    events = source('bronze', 'billing'),
    topics = ['billing.billing.invoices'],
    connector = 'mariadb',
    table = ['billing', 'invoices'],
    keys = ['invoice_id'],
    columns = {
        'invoice_id': 'int64',
        'account_no': 'string',
        'status': 'string',
        'amount': 'Decimal(10,2)',
        'issued_on': 'Date',
    },
) }}
