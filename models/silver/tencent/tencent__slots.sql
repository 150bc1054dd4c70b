{{ debezium_latest(
    changes = ref('stg_tencent__slots'),
    keys = ['slot'],
    columns = [
        'slot',
        'shipment_id',
    ],
) }}
