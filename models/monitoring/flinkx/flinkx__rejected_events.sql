{{ debezium_rejected_events(
    events = source('bronze', 'flinkx'),
    changes = {
        'inventory.products': ref('stg_flinkx__products'),
    },
) }}
