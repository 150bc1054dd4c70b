{{ debezium_latest(
    changes = ref('stg_billing__webhooks'),
    keys = ['hook_id'],
    columns = [
        'hook_id',
        'payload',
        'source',
        'op',
    ],
) }}
