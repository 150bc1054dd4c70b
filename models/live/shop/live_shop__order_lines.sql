{{ config(schema = 'shop', alias = 'order_lines') }}

{{ debezium_live(silver = ref('shop__order_lines')) }}
