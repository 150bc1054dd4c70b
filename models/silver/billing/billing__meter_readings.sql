{{ debezium_latest(
    changes = ref('stg_billing__meter_readings'),
    keys = ['Meter Id'],
    columns = [
        'Meter Id',
        'select',
        'kWh.day',
        'back`tick',
        'Größe',
        '名前',
    ],
) }}
