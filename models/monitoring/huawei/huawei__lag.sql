{{ debezium_lag(
    events = source('bronze', 'huawei'),
    tables = {
        'ledger.invoice_lines': [ref('stg_huawei__invoice_lines'), ref('huawei__invoice_lines')],
    },
) }}
