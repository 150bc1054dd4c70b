{{ config(schema = 'shop', alias = 'return_slips') }}

{{ debezium_live(silver = ref('shop__return_slips')) }}
