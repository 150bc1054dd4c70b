{{ config(schema = 'billing', alias = 'meter_readings') }}

{{ debezium_live(silver = ref('billing__meter_readings')) }}
