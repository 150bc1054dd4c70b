{{ debezium_rejected_events(
    events = source('bronze', 'risingwavex'),
    changes = {
        'inventory.customers': ref('stg_risingwavex__customers'),
    },
) }}
