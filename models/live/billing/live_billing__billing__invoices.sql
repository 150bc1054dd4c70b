{{ config(schema = 'billing', alias = 'billing__invoices') }}

{{ debezium_live(silver = ref('billing__billing__invoices')) }}
