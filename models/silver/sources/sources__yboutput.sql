{{ debezium_latest(
    changes = ref('stg_sources__yboutput'),
    keys = ['id'],
    columns = [
        'id',
        'note',
        'more',
    ],
) }}
