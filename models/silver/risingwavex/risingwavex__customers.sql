{{ debezium_latest(
    changes = ref('stg_risingwavex__customers'),
    keys = ['id'],
    columns = [
        'id',
        'first_name',
        'last_name',
        'email',
    ],
) }}
