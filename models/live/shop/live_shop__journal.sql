{{ config(schema = 'shop', alias = 'journal') }}

{{ debezium_live(silver = ref('shop__journal')) }}
