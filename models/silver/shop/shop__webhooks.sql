{{ debezium_latest(
    changes = ref('stg_shop__webhooks'),
    keys = ['hook_id'],
    columns = [
        'hook_id',
        'payload',
        'source',
        'op',
    ],
) }}
