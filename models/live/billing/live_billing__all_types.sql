{{ config(schema = 'billing', alias = 'all_types') }}

{{ debezium_live(silver = ref('billing__all_types')) }}
