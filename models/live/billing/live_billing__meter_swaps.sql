{{ config(schema = 'billing', alias = 'meter_swaps') }}

{{ debezium_live(silver = ref('billing__meter_swaps')) }}
