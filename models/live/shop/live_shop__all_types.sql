{{ config(schema = 'shop', alias = 'all_types') }}

{{ debezium_live(silver = ref('shop__all_types')) }}
