{{ debezium_changes(
    events = source('bronze', 'lindorm'),
    topics = ['lindorm_meters'],
    connector = 'lindorm',
    table = ['ld-demo01', 'energy', 'meters'],
    keys = ['meter_id'],
    columns = {
        'meter_id': 'string',
        'site': 'string',
        'reading': 'double',
        'unit': 'string',
    },
) }}
