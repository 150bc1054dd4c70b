{{ debezium_latest(
    changes = ref('stg_sources__src_flattened'),
    keys = ['id'],
    columns = [
        'id',
        'note',
    ],
) }}
