{{ debezium_latest(
    changes = ref('stg_billing__payments'),
    keys = ['payment_id'],
    columns = [
        'payment_id',
        'invoice_id',
        'amount',
        'paid_at',
    ],
) }}
