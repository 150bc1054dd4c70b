{{ config(schema = 'billing', alias = 'payments') }}

{{ debezium_live(silver = ref('billing__payments')) }}
