{{ config(materialized = 'incremental', incremental_strategy = 'debezium_merge', file_format = 'iceberg') }}

{{ debezium_rejected_events(
    events = source('bronze', 'billing'),
    tables = {
        'billing.accounts': [ref('stg_billing__accounts'), ref('billing__accounts')],
        'billing.all_types': [ref('stg_billing__all_types'), ref('billing__all_types')],
        'archive.invoices': [ref('stg_billing__archive__invoices'), ref('billing__archive__invoices')],
        'billing.invoices': [ref('stg_billing__billing__invoices'), ref('billing__billing__invoices')],
        'billing.contracts': [ref('stg_billing__contracts'), ref('billing__contracts')],
        'billing.debezium_signal': [ref('stg_billing__debezium_signal'), ref('billing__debezium_signal')],
        'billing.dunning': [ref('stg_billing__dunning'), ref('billing__dunning')],
        'billing.invoice_lines': [ref('stg_billing__invoice_lines'), ref('billing__invoice_lines')],
        'billing.job_log': [ref('stg_billing__job_log'), ref('billing__job_log')],
        'billing.Meter Readings': [ref('stg_billing__meter_readings'), ref('billing__meter_readings')],
        'billing.Meter.Swaps': [ref('stg_billing__meter_swaps'), ref('billing__meter_swaps')],
        'billing.notes': [ref('stg_billing__notes'), ref('billing__notes')],
        'billing.order': [ref('stg_billing__order'), ref('billing__order')],
        'billing.payments': [ref('stg_billing__payments'), ref('billing__payments')],
        'billing.reminders': [ref('stg_billing__reminders'), ref('billing__reminders')],
        'billing.tariffs': [ref('stg_billing__tariffs'), ref('billing__tariffs')],
        'billing.webhooks': [ref('stg_billing__webhooks'), ref('billing__webhooks')],
    },
) }}
