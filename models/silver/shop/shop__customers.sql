{{ debezium_latest(
    changes = ref('stg_shop__customers'),
    keys = ['customer_id'],
    columns = [
        'customer_id',
        'name',
        'email',
        'vip',
        'country',
        'phone',
    ],
) }}
