{{ debezium_latest(
    changes = ref('stg_shop__stock'),
    keys = ['depot', 'sku'],
    columns = [
        'depot',
        'sku',
        'amount',
    ],
) }}
