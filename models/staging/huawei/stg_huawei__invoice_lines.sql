{{ debezium_changes(
    events = source('bronze', 'huawei'),
    topics = ['cdl_invoice_lines', 'cdl_invoice_lines_dbz'],
    connector = 'huawei_cdl',
    table = ['ledger', 'invoice_lines'],
    keys = ['invoice_no', 'line'],
    columns = {
        'invoice_no': 'string',
        'line': 'int32',
        'amount': 'string',
        'due_at': 'TimestampText',
        'scan': 'string',
    },
) }}
