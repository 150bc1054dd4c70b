{{ debezium_latest(
    changes = ref('stg_billing__invoices'),
    keys = ['invoice_id'],
    columns = [
        'invoice_id',
        'closed_at',
        'remark',
    ],
) }}
