{{ debezium_latest(
    changes = ref('stg_huawei__invoice_lines'),
    keys = ['invoice_no', 'line'],
    columns = [
        'invoice_no',
        'line',
        'amount',
        'due_at',
        'scan',
    ],
) }}
