{{ debezium_latest(
    changes = ref('stg_shop__order_lines'),
    keys = ['order_id', 'line_no'],
    columns = [
        'order_id',
        'line_no',
        'sku',
        'quantity',
    ],
) }}
