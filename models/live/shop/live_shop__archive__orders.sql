{{ config(schema = 'shop', alias = 'archive__orders') }}

{{ debezium_live(silver = ref('shop__archive__orders')) }}
