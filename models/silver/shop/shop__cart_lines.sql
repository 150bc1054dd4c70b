{{ debezium_latest(
    changes = ref('stg_shop__cart_lines'),
    keys = ['cart_id', 'sku'],
    columns = [
        'cart_id',
        'sku',
        'quantity',
    ],
) }}
