{{ config(schema = 'risingwavex', alias = 'customers') }}

{{ debezium_live(silver = ref('risingwavex__customers')) }}
