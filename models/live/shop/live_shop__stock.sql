{{ config(schema = 'shop', alias = 'stock') }}

{{ debezium_live(silver = ref('shop__stock')) }}
