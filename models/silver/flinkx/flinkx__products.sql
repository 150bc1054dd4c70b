{{ debezium_latest(
    changes = ref('stg_flinkx__products'),
    keys = ['id'],
    columns = [
        'id',
        'name',
        'description',
        'weight',
    ],
) }}
