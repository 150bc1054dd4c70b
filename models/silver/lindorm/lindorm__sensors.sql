{{ debezium_latest(
    changes = ref('stg_lindorm__sensors'),
    keys = ['ROW'],
    columns = [
        'ROW',
        's_label',
        'm_celsius',
        'm_raw',
    ],
) }}
