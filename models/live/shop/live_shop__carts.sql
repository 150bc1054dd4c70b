{{ config(schema = 'shop', alias = 'carts') }}

{{ debezium_live(silver = ref('shop__carts')) }}
