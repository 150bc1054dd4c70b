{{ debezium_latest(
    changes = ref('stg_tencent__vehicles'),
    keys = ['id'],
    columns = [
        'id',
        'plate',
        'serviced_at',
        'mileage',
    ],
) }}
