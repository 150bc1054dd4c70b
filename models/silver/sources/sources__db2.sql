{{ debezium_latest(
    changes = ref('stg_sources__db2'),
    keys = ['id'],
    columns = [
        'id',
        'note',
    ],
) }}
