{{ debezium_latest(
    changes = ref('stg_oracle__shipments'),
    keys = ['SHIPMENT_ID'],
    columns = [
        'SHIPMENT_ID',
        'CARRIER',
        'WEIGHT_KG',
        'SENT_ON',
        'REMARKS',
    ],
) }}
