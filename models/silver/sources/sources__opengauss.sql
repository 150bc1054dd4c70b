{{ debezium_latest(
    changes = ref('stg_sources__opengauss'),
    keys = ['id'],
    columns = [
        'id',
        'note',
    ],
) }}
