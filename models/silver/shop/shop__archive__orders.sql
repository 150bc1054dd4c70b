{{ debezium_latest(
    changes = ref('stg_shop__archive__orders'),
    keys = ['order_id'],
    columns = [
        'order_id',
        'closed_on',
        'remark',
    ],
) }}
