{{ debezium_changes(
    events = source('bronze', 'sqlserver'),
    topics = ['crm.sales.dbo.subscriptions'],
    connector = 'sqlserver',
    table = ['sales', 'dbo', 'subscriptions'],
    keys = ['subscription_id'],
    columns = {
        'subscription_id': 'int32',
        'plan': 'string',
        'monthly_fee': 'Decimal(8,2)',
        'starts_on': 'Date',
        'changed_at': 'NanoTimestamp',
        'is_paused': 'boolean',
    },
) }}
