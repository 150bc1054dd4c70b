{{ debezium_latest(
    changes = ref('stg_billing__reminders'),
    keys = ['reminder_id'],
    columns = [
        'reminder_id',
        'account_no',
        'text',
    ],
) }}
