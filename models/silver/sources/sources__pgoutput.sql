{{ debezium_latest(
    changes = ref('stg_sources__pgoutput'),
    keys = ['id'],
    columns = [
        'id',
        'note',
        'more',
    ],
) }}
