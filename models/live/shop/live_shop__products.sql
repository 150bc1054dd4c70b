{{ config(schema = 'shop', alias = 'products') }}

{{ debezium_live(silver = ref('shop__products')) }}
