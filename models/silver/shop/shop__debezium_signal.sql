{{ debezium_latest(
    changes = ref('stg_shop__debezium_signal'),
    keys = ['id'],
    columns = [
        'id',
        'type',
        'data',
    ],
) }}
