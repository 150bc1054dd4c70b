{{ debezium_latest(
    changes = ref('stg_sources__cassandra'),
    keys = ['id'],
    columns = [
        'id',
        'note',
        'more',
    ],
) }}
