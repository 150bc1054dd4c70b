{{ config(schema = 'oracle', alias = 'shipments') }}

{{ debezium_live(silver = ref('oracle__shipments')) }}
