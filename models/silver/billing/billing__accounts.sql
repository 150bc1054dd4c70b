{{ debezium_latest(
    changes = ref('stg_billing__accounts'),
    keys = ['account_no'],
    columns = [
        'account_no',
        'holder',
        'city',
    ],
) }}
