{{ debezium_latest(
    changes = ref('stg_shop__journal'),
    keys = ['entry_id'],
    columns = [
        'entry_id',
        'note',
    ],
) }}
