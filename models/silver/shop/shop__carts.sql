{{ debezium_latest(
    changes = ref('stg_shop__carts'),
    keys = ['cart_id'],
    columns = [
        'cart_id',
        'customer_id',
    ],
) }}
