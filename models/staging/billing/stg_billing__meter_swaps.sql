{{ debezium_changes(
    events = source('bronze', 'billing'),
    topics = ['billing.billing.Meter.Swaps'],
    connector = 'mariadb',
    table = ['billing', 'Meter.Swaps'],
    keys = ['Swap.No'],
    columns = {
        'Swap.No': 'int32',
        'Reason': 'string',
    },
) }}
