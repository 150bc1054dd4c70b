{{ debezium_latest(
    changes = ref('stg_sources__yashandb'),
    keys = ['id'],
    columns = [
        'id',
        'note',
    ],
) }}
