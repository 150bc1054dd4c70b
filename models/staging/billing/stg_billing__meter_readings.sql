{{ debezium_changes(
    events = source('bronze', 'billing'),
    topics = ['billing.billing.Meter_Readings'],
    connector = 'mariadb',
    table = ['billing', 'Meter Readings'],
    keys = ['Meter Id'],
    columns = {
        'Meter Id': 'int32',
        'select': 'string',
        'kWh.day': 'Decimal(8,2)',
        'back`tick': 'string',
        'Größe': 'string',
        '名前': 'string',
    },
) }}
