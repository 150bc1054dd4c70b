{{ debezium_changes(
    events = source('bronze', 'shop'),
    topics = ['shop.public.Return.Slips'],
    connector = 'postgresql',
    table = ['public', 'Return.Slips'],
    keys = ['Slip.No'],
    columns = {
        'Slip.No': 'int32',
        'Reason': 'string',
    },
) }}
