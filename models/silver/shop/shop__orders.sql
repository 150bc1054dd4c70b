{{ debezium_latest(
    changes = ref('stg_shop__orders'),
    keys = ['order_id'],
    columns = [
        'order_id',
        'closed_on',
        'remark',
    ],
) }}
