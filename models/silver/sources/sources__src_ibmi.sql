{{ debezium_latest(
    changes = ref('stg_sources__src_ibmi'),
    keys = ['id'],
    columns = [
        'id',
        'note',
    ],
) }}
