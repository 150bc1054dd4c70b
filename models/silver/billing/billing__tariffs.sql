{{ debezium_latest(
    changes = ref('stg_billing__tariffs'),
    keys = ['code'],
    columns = [
        'code',
        'cents_per_kwh',
        'note',
        'legacy_code',
    ],
) }}
