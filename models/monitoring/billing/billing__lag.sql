{{ debezium_lag(
    events = source('bronze', 'billing'),
    tables = {
        'billing.accounts': [ref('stg_billing__accounts'), ref('billing__accounts')],
        'billing.contracts': [ref('stg_billing__contracts'), ref('billing__contracts')],
        'billing.invoices': [ref('stg_billing__invoices'), ref('billing__invoices')],
        'billing.payments': [ref('stg_billing__payments'), ref('billing__payments')],
        'billing.reminders': [ref('stg_billing__reminders'), ref('billing__reminders')],
        'billing.tariffs': [ref('stg_billing__tariffs'), ref('billing__tariffs')],
    },
) }}
