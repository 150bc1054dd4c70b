{{ config(schema = 'shop', alias = 'customers') }}

{{ debezium_live(silver = ref('shop__customers')) }}
