{{ debezium_changes(
    events = source('bronze', 'shop'),
    topics = ['shop.public.reviews'],
    connector = 'postgresql',
    table = ['public', 'reviews'],
    keys = ['review_id'],
    columns = {
        'review_id': 'int32',
        'sku': 'string',
        'stars': 'int16',
        'body': 'string',
    },
) }}
