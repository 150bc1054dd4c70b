{{ debezium_latest(
    changes = ref('stg_billing__dunning'),
    keys = ['account_no'],
    columns = [
        'account_no',
        'level',
    ],
) }}
