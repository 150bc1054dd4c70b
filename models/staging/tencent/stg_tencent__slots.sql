{{ debezium_changes(
    events = source('bronze', 'tencent'),
    topics = ['port_pg.public.slots'],
    connector = 'postgresql',
    table = ['public', 'slots'],
    keys = ['slot'],
    columns = {
        'slot': 'string',
        'shipment_id': 'int32',
    },
) }}
