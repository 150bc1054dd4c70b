{{ debezium_latest(
    changes = ref('stg_shop__orders'),
    keys = ['order_id'],
    columns = [
        'order_id',
        'customer_id',
        'status',
        'total',
        'ordered_at',
    ],
) }}
