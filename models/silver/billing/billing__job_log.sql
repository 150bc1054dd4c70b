{{ debezium_latest(
    changes = ref('stg_billing__job_log'),
    keys = ['entry_id'],
    columns = [
        'entry_id',
        'note',
    ],
) }}
