{{ debezium_log(
    changes = ref('stg_billing__notes'),
    columns = [
        'account_no',
        'note',
        'written_at',
    ],
) }}
