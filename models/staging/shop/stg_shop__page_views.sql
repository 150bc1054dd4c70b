{{ debezium_changes(
    events = source('bronze', 'shop'),
    topics = ['shop.public.page_views'],
    connector = 'postgresql',
    table = ['public', 'page_views'],
    keys = [],
    columns = {
        'visitor': 'string',
        'path': 'string',
        'seen_at': 'MicroTimestamp',
    },
) }}
