{{ config(schema = 'shop', alias = 'orders') }}

{{ debezium_live(silver = ref('shop__orders')) }}
