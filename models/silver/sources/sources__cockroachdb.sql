{{ debezium_latest(
    changes = ref('stg_sources__cockroachdb'),
    keys = ['id'],
    columns = [
        'id',
        'note',
    ],
) }}
