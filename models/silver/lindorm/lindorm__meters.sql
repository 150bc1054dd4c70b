{{ debezium_latest(
    changes = ref('stg_lindorm__meters'),
    keys = ['meter_id'],
    columns = [
        'meter_id',
        'site',
        'reading',
        'unit',
    ],
) }}
