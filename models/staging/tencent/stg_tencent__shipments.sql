{{ debezium_changes(
    events = source('bronze', 'tencent'),
    topics = ['port_pg.public.shipments'],
    connector = 'postgresql',
    table = ['public', 'shipments'],
    keys = ['id'],
    columns = {
        'id': 'int32',
        'carrier': 'string',
        'freight': 'Decimal(8,2)',
        'packed_at': 'MicroTimestamp',
        'fragile': 'boolean',
    },
) }}
