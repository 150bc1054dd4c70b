{{ debezium_changes(
    events = source('bronze', 'mongodb'),
    topics = ['field.greenhouse.beds'],
    connector = 'mongodb',
    table = ['greenhouse', 'beds'],
    keys = ['_id'],
    columns = {
        '_id': 'Bson(objectId)',
        'name': 'Bson(string)',
        'area': 'Bson(decimal)',
        'sown': 'Bson(date)',
        'plants': 'Bson(any)',
        'soil': 'Bson(any)',
        'covered': 'Bson(bool)',
        'label': 'Bson(binData)',
        'document': 'Bson(document)',
    },
) }}
