{{ debezium_latest(
    changes = ref('stg_sqlserver__subscriptions'),
    keys = ['subscription_id'],
    columns = [
        'subscription_id',
        'plan',
        'monthly_fee',
        'starts_on',
        'changed_at',
        'is_paused',
    ],
) }}
