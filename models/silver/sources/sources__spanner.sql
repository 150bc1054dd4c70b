{{ debezium_latest(
    changes = ref('stg_sources__spanner'),
    keys = ['id'],
    columns = [
        'id',
        'note',
    ],
) }}
