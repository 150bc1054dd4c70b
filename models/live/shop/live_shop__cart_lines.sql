{{ config(schema = 'shop', alias = 'cart_lines') }}

{{ debezium_live(silver = ref('shop__cart_lines')) }}
