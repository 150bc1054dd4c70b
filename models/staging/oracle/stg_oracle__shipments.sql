{{ debezium_changes(
    events = source('bronze', 'oracle'),
    topics = ['erp.LOGISTICS.SHIPMENTS'],
    connector = 'oracle',
    table = ['ERPPDB', 'LOGISTICS', 'SHIPMENTS'],
    keys = ['SHIPMENT_ID'],
    columns = {
        'SHIPMENT_ID': 'int64',
        'CARRIER': 'string',
        'WEIGHT_KG': 'VariableScaleDecimal',
        'SENT_ON': 'Timestamp',
        'REMARKS': 'string',
    },
) }}
