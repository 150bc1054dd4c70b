{{ debezium_latest(
    changes = ref('stg_shop__reviews'),
    keys = ['review_id'],
    columns = [
        'review_id',
        'sku',
        'stars',
        'body',
    ],
) }}
