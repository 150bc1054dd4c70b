{{ config(schema = 'billing', alias = 'invoices') }}

{{ debezium_live(silver = ref('billing__invoices')) }}
