{{ debezium_latest(
    changes = ref('stg_billing__archive__invoices'),
    keys = ['invoice_id'],
    columns = [
        'invoice_id',
        'closed_at',
        'remark',
    ],
) }}
