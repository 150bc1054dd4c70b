{{ debezium_lag(
    events = source('bronze', 'sqlserver'),
    tables = {
        'sales.dbo.subscriptions': [ref('stg_sqlserver__subscriptions'), ref('sqlserver__subscriptions')],
    },
) }}
