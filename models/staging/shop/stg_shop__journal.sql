{{ debezium_changes(
    events = source('bronze', 'shop'),
    topics = ['shop.public.journal'],
    connector = 'postgresql',
    table = ['public', 'journal'],
    keys = ['entry_id'],
    columns = {
        'entry_id': 'int32',
        'note': 'string',
    },
) }}
