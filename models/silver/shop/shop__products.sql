{{ debezium_latest(
    changes = ref('stg_shop__products'),
    keys = ['sku'],
    columns = [
        'sku',
        'price',
        'description',
        'attributes',
        'photo',
        'tags',
    ],
) }}
