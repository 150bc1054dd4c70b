{{ config(schema = 'billing', alias = 'contracts') }}

{{ debezium_live(silver = ref('billing__contracts')) }}
