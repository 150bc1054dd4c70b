{{ debezium_latest(
    changes = ref('stg_billing__contracts'),
    keys = ['contract_id'],
    columns = [
        'contract_id',
        'account_no',
        'tariff',
        'signed_on',
        'discount',
    ],
) }}
