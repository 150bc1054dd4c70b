{{ debezium_changes(
    events = source('bronze', 'lindorm'),
    topics = ['lindorm_sensors'],
    connector = 'lindorm',
    table = ['ld-demo01', 'default', 'sensors'],
    keys = ['ROW'],
    columns = {
        'ROW': 'bytes',
        's_label': 'bytes',
        'm_celsius': 'bytes',
        'm_raw': 'bytes',
    },
) }}
