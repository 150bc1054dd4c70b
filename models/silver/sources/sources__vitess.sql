{{ debezium_latest(
    changes = ref('stg_sources__vitess'),
    keys = ['id'],
    columns = [
        'id',
        'note',
    ],
) }}
