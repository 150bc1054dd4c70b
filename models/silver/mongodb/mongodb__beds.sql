{{ debezium_latest(
    changes = ref('stg_mongodb__beds'),
    keys = ['_id'],
    columns = [
        '_id',
        'name',
        'area',
        'sown',
        'plants',
        'soil',
        'covered',
        'label',
        'document',
    ],
) }}
