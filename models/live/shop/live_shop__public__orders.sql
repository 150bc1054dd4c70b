{{ config(schema = 'shop', alias = 'public__orders') }}

{{ debezium_live(silver = ref('shop__public__orders')) }}
