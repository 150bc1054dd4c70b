{{ config(schema = 'billing', alias = 'archive__invoices') }}

{{ debezium_live(silver = ref('billing__archive__invoices')) }}
