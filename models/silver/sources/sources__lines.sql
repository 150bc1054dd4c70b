{{ debezium_latest(
    changes = ref('stg_sources__lines'),
    keys = ['id'],
    columns = [
        'id',
        'note',
    ],
) }}
