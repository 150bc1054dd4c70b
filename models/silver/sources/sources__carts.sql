{{ debezium_latest(
    changes = ref('stg_sources__carts'),
    keys = ['id'],
    columns = [
        'id',
        'note',
    ],
) }}
