{{ debezium_latest(
    changes = ref('stg_mongodb__beds'),
    keys = ['_id'],
    columns = [
        '_id',
        'name',
        'area',
        'plants',
        'sown',
        'soil',
        'covered',
        'label',
        'document',
    ],
) }}
