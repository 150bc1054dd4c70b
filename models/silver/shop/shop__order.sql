{{ debezium_latest(
    changes = ref('stg_shop__order'),
    keys = ['from'],
    columns = [
        'from',
        'to',
        'group',
    ],
) }}
