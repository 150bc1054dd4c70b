{{ debezium_latest(
    changes = ref('stg_sources__informix'),
    keys = ['id'],
    columns = [
        'id',
        'note',
    ],
) }}
