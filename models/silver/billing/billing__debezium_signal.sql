{{ debezium_latest(
    changes = ref('stg_billing__debezium_signal'),
    keys = ['id'],
    columns = [
        'id',
        'type',
        'data',
    ],
) }}
