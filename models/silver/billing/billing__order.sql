{{ debezium_latest(
    changes = ref('stg_billing__order'),
    keys = ['from'],
    columns = [
        'from',
        'to',
        'group',
    ],
) }}
