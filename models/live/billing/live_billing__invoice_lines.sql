{{ config(schema = 'billing', alias = 'invoice_lines') }}

{{ debezium_live(silver = ref('billing__invoice_lines')) }}
