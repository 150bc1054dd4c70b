{{ debezium_latest(
    changes = ref('stg_mongodb__readings'),
    keys = ['_id'],
    columns = [
        '_id',
        'sensor',
        'value',
        'at',
        'raw',
        'flags',
        'document',
    ],
) }}
