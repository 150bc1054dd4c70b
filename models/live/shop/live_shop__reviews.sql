{{ config(schema = 'shop', alias = 'reviews') }}

{{ debezium_live(silver = ref('shop__reviews')) }}
