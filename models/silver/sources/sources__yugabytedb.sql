{{ debezium_latest(
    changes = ref('stg_sources__yugabytedb'),
    keys = ['id'],
    columns = [
        'id',
        'note',
        'more',
    ],
) }}
