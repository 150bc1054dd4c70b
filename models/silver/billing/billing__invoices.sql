{{ debezium_latest(
    changes = ref('stg_billing__invoices'),
    keys = ['invoice_id'],
    columns = [
        'invoice_id',
        'account_no',
        'status',
        'amount',
        'issued_on',
    ],
) }}
