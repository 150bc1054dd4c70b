{{ debezium_latest(
    changes = ref('stg_billing__invoice_lines'),
    keys = ['invoice_id', 'line_no'],
    columns = [
        'invoice_id',
        'line_no',
        'label',
        'kwh',
    ],
) }}
