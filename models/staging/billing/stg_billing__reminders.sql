{{ debezium_changes(
    events = source('bronze', 'billing'),
    topics = ['billing.billing.reminders'],
    connector = 'mariadb',
    table = ['billing', 'reminders'],
    keys = ['reminder_id'],
    columns = {
        'reminder_id': 'int32',
        'account_no': 'string',
        'text': 'string',
    },
) }}
