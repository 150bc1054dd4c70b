{{ debezium_latest(
    changes = ref('stg_sources__ticdc'),
    keys = ['id'],
    columns = [
        'id',
        'note',
    ],
) }}
