{{ debezium_changes(
    events = source('bronze', 'billing'),
    topics = ['billing.billing.job_log'],
    connector = 'mariadb',
    table = ['billing', 'job_log'],
    keys = ['entry_id'],
    columns = {
        'entry_id': 'int32',
        'note': 'string',
    },
) }}
