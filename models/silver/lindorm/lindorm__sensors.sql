{{ debezium_latest(
    changes = ref('stg_lindorm__sensors'),
    keys = ['ROW'],
    columns = [
        'ROW',
        'm_raw',
        's_label',
        'm_celsius',
    ],
) }}
